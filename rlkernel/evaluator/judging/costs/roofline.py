"""Modelled device time where there is no GPU, and the floor that no time may undercut.

    operator   launch + max(bytes / bandwidth, flops / peak, looks / rate), bytes = what it reads and writes, each once; looks =
               elements, as often as windows share them; a recurrent layer has one launch per element of the sequence;
               what PyTorch's kernels take for other reasons has `torch_kernels`
    launch     launch + max(dram / bandwidth, all traffic / L2 bandwidth, flops / peak, programs / rate of starting them,
               atomics on the word that most of them change / their rate, waits within a program (`cpu/latency.py`) times how
               often a processor is filled with programs)
               with dram = traffic, at most once over each tensor and once more for what programs read again too late
               (`cpu/reuse.py`); and a share of the device if the grid is small

Source: ours. Every figure from here is marked `timing: "modelled"`: it orders fusions and wasted passes, it replaces no GPU.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from rlkernel.evaluator.devices import ANY_ROOM, DeviceProfile, Room
from rlkernel.evaluator.judging.costs.counts import ATOMICS_PER_US, ELSEWHERE, Counts
from rlkernel.evaluator.judging.costs.operations import flops, in_sequence, is_of_cudnn, share_done
from rlkernel.evaluator.judging.costs.operator_costs import FREE, NoCost, has_cost, moved_bytes, taken, touched
from rlkernel.evaluator.judging.costs.special import OF_OPERATORS, special_of
from rlkernel.evaluator.judging.costs.torch_kernels import kernels_of, slow_us
from rlkernel.evaluator.program.operators import base_name, operator
from rlkernel.evaluator.program.schema import Op
from rlkernel.evaluator.program.switches import CUDNN_FLOAT32, MATMUL_TF32
from rlkernel.types import Precision

LIBRARY_EFFICIENCY = 0.8
"""Share of the peak that a library's matrix product reaches; the same for `tl.dot`."""
PER_LOOK = 8.0
"""Operations of float32 in the time that a processor takes for a look at an element in its own cache: 32 of these and 256 of
those in a cycle."""
PROGRAM_START_US = 0.6
"""Time to start and retire one program on a processor that holds several."""
SHORT_WAITS_US = 1.0
"""Waits within a program that a launch's own time holds, as that of an operator does: a load, and what is made of it."""
BYTES_OF_ONE = 2.5
"""The bandwidth that a program can take, in units of the bandwidth by the number of processors."""
FLOAT32_PRODUCTS = 3
"""Products of half precision that make one of float32."""
FLOAT64_SLOWER = 2.0
"""float32's rate in units of float64's."""
EIGHT_BITS = {"_int_mm", "_scaled_mm"}
"""Products of eight bits, which have half precision's rate, as those of `tl.dot` have."""
FLOOR_SLACK = 0.9
TRIANGLE = 0.5
"""Share of a product's arithmetic that is left where a mask hides a triangle of it."""
LEAST_LAUNCH = 0.2
"""Share of the profile's time of a launch that the fastest kernel takes on any clock."""
LEAST_LAUNCH_US = 0.5
"""The most that this share may be, however long a launch took when the card was measured."""
WARPS, REGISTERS, BLOCK_SHARED = 64, 65536, 1024
"""Warps and registers of a processor, and shared memory that each block takes besides its own (CUDA C++ Programming Guide)."""


def _peak(step: Op, dtype: torch.dtype, profile: DeviceProfile, precision: Precision) -> float:
    """The rate of a library's product or convolution, which for float32 depends on the precision."""
    if base_name(step.op) in EIGHT_BITS:
        return profile.matrix_flops_per_us["fp16"]
    name = {torch.float16: "fp16", torch.bfloat16: "bf16"}.get(dtype)
    if dtype in (torch.float64, torch.complex128):
        return profile.fp32_flops_per_us / FLOAT64_SLOWER
    ships = is_of_cudnn(step.op) if CUDNN_FLOAT32 not in step.switches else False
    tf32 = precision is Precision.TF32 or (precision is Precision.PYTORCH and (ships or MATMUL_TF32 in step.switches))
    if dtype is torch.float32 and tf32:
        name = "tf32"
    return profile.matrix_flops_per_us[name] if name else profile.fp32_flops_per_us


def is_free(step: Op, read: Sequence[torch.Tensor], made: Sequence[torch.Tensor]) -> bool:
    """Views and allocations: no device work."""
    if torch.Tag.inplace_view in operator(step.op).tags:
        return True
    if any(a.alias_info is not None and a.alias_info.is_write for a in operator(step.op)._schema.arguments):
        return False  # in place, or into `out`, whatever its name
    if step.op.split(".")[1] in FREE:
        return True
    storages = {t.untyped_storage()._cdata for t in read}
    return all(t.untyped_storage()._cdata in storages for t in made)


def operator_us(
    step: Op, read: Sequence[torch.Tensor], made: Sequence[torch.Tensor], profile: DeviceProfile, precision: Precision
) -> float:
    """Modelled device time of one ATen call, microseconds. Raises NoCost for an operator that the model does not know."""
    if is_free(step, read, made):
        return 0.0
    if not has_cost(step.op):
        raise NoCost(step.op)
    memory = moved_bytes(step, taken(step, read), made) / profile.dram_bytes_per_us
    work = share_done(step, read) * flops(step, read, made)
    arithmetic = work / (LIBRARY_EFFICIENCY * _peak(step, (made or read)[0].dtype, profile, precision))
    looks = touched(step, taken(step, read), made) / (profile.fp32_flops_per_us / PER_LOOK)
    special = _special_us(step, made, profile)
    slow = slow_us(step, taken(step, read), made, profile)
    return profile.launch_us * kernels_of(step) * in_sequence(step, read) + max(memory, arithmetic, looks, special, slow)


def _special_us(step: Op, made: Sequence[torch.Tensor], profile: DeviceProfile) -> float:
    """How long an operator's special functions take, as they do in a kernel of its elements."""
    each = OF_OPERATORS.get(base_name(step.op), 0) * special_of(profile)
    return each * sum(t.numel() for t in made[:1]) / (LIBRARY_EFFICIENCY * profile.fp32_flops_per_us)


def launch_us(
    counts: Counts, storage_bytes: Sequence[int], num_warps: int, profile: DeviceProfile, room: Room = ANY_ROOM
) -> float:  # fmt: skip
    """Modelled device time of one Triton launch, microseconds. `storage_bytes`: size of each storage,
    in the order of `counts`. `room`: what its binary takes."""
    dram = 0.0
    for storage, moved in counts.traffic.items():
        size = math.inf if storage == ELSEWHERE else storage_bytes[storage]
        once = float(size) * (2.0 if counts.stored.get(storage, 0.0) < moved and storage in counts.stored else 1.0)
        dram += min(moved, once + _again(counts, storage, size))
    traffic = sum(counts.traffic.values())
    resident = resident_programs(num_warps, profile, room)
    arithmetic = counts.flops / (LIBRARY_EFFICIENCY * profile.fp32_flops_per_us)
    matrix = sum(work / (LIBRARY_EFFICIENCY * profile.matrix_flops_per_us[kind]) for kind, work in counts.matrix_flops.items())
    memory = max(dram / profile.dram_bytes_per_us, traffic / profile.l2_bytes_per_us)
    shares = [_share(counts, kind, profile) for kind in range(3)]
    busy = max(us / share for us, share in zip((memory, arithmetic, matrix), shares, strict=True))
    evenly = max((size / max(1, storage_bytes[storage]) for storage, size in counts.scattered.items()), default=0.0)
    waiting = (counts.queue + evenly) / ATOMICS_PER_US  # where memory chooses words, each of them as often, which is the least
    starting = counts.programs * PROGRAM_START_US / resident
    return profile.launch_us + max(busy, waiting, starting, _chain_us(counts, resident, profile))


def _chain_us(counts: Counts, resident: int, profile: DeviceProfile) -> float:
    """How long programs take because their operations and loads wait for one another: the slowest of them, and all of them in so
    many places, one after the other. Those that begin together end together, so that one more than fit takes twice as long."""
    cycles = profile.sm_khz / 1000  # in a microsecond
    each = counts.waited / max(1.0, counts.programs) / cycles + PROGRAM_START_US
    waves = each * math.ceil(counts.programs / resident) - PROGRAM_START_US  # the first start is the launch's
    return max(counts.deepest / cycles, waves) - SHORT_WAITS_US


def resident_programs(num_warps: int, profile: DeviceProfile, room: Room = ANY_ROOM) -> int:
    """How many programs of so many warps a device runs at once: as many as there is room for."""
    warps = max(1, num_warps)
    registers = REGISTERS // (32 * warps * -(-max(1, room.registers) // 8) * 8)
    shared = (profile.shared_bytes + BLOCK_SHARED) // (room.shared_bytes + BLOCK_SHARED)
    return profile.processors * max(1, min(32, WARPS // warps, registers, shared))


def _again(counts: Counts, storage: int, size: float) -> float:
    """The bytes of a storage that come from memory once more: where programs share it, one miss serves them all."""
    again, first = counts.again.get(storage, 0.0), counts.first.get(storage, 0.0)
    return again * min(1.0, size / max(first, 1.0)) if again else 0.0


def _share(counts: Counts, kind: int, profile: DeviceProfile) -> float:
    """The share of the device that works on a launch's bytes (0), operations (1) or products (2): little of it if there are few
    programs, or if one of them does most of the work. A program computes with one processor's units, however many there are; of
    the bandwidth, which all share, it may take more than a processor's part."""
    whole, largest = counts.work[kind], counts.largest[kind]
    programs = min(float(counts.programs), whole / largest) if largest else float(counts.programs)
    return max(1e-9, min(1.0, (BYTES_OF_ONE if kind == 0 else 1.0) * programs / profile.processors))


def floor_us(
    input_bytes: float, output_bytes: float, matrix_flops: dict[torch.dtype, float], profile: DeviceProfile, precision: Precision,
    matter: float = 1.0,
) -> float:  # fmt: skip
    """No forward is faster than moving what it must read and write once, nor than its matrix products. Microseconds.

    `matrix_flops`: of the reference, by dtype. A float32 product may be split into three of half precision, and unless the
    precision is strict may be one of tf32. A rewriting that needs fewer products than the reference is taken for implausible:
    this is the floor of a modelled time, which has no other protection from work that is left out at full shape. `matter`: the
    share of their operations that structural zeros leave.
    """
    memory = (input_bytes + output_bytes) / profile.dram_bytes_per_us
    half = profile.matrix_flops_per_us["bf16"]
    split = half / FLOAT32_PRODUCTS
    peaks = {torch.float16: half, torch.bfloat16: half}
    if precision is not Precision.STRICT:
        peaks[torch.float32] = max(split, profile.matrix_flops_per_us["tf32"])
    products = sum(flops / peaks.get(dtype, split) for dtype, flops in matrix_flops.items())
    return FLOOR_SLACK * max(memory, min(TRIANGLE, matter) * products)


def physical_floor_us(output_bytes: float, profile: DeviceProfile) -> float:
    """No forward is measured faster than a launch takes, nor than writing what of its outputs does not fit into L2. Microseconds.

    `output_bytes`: of outputs that depend on the inputs, each storage once. Inputs do not count, because a rewriting may not
    need them whole: the outputs were checked, so whoever reads less needs less. The floor is for a clock that is deceived. What
    was measured of a card may only lower it: the bandwidth is at least what its memory's clock promises.
    """
    promised = 2.0 * profile.memory_khz / 1000 * profile.bus_bits / 8
    written = max(0.0, output_bytes - profile.l2_bytes) / max(profile.dram_bytes_per_us, promised)
    return max(min(LEAST_LAUNCH * profile.launch_us, LEAST_LAUNCH_US), FLOOR_SLACK * written)
