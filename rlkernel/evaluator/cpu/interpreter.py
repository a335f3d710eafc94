"""Runs a kernel's checked text with Triton's interpreter, on the CPU.

Two uses: for real (small shapes, correctness), and dry (full shapes, no memory behind the addresses: a few programs of the grid
are followed to count what a launch moves and computes). Meant for a process that dies afterwards: it patches `triton.language`
for good.
"""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.runtime import interpreter as triton_interpreter
from triton.runtime.interpreter import TensorHandle

from rlkernel.evaluator.cpu import limit_text, turns
from rlkernel.evaluator.cpu.fetching import STAGES, Fetching
from rlkernel.evaluator.cpu.known import KnownMemory
from rlkernel.evaluator.cpu.language import KernelWords, scalar, the_machine, words
from rlkernel.evaluator.cpu.latency import Chain
from rlkernel.evaluator.cpu.loaded import DecidedByMemory, mark
from rlkernel.evaluator.cpu.memory import OutOfBounds
from rlkernel.evaluator.cpu.outcomes import Outcomes
from rlkernel.evaluator.cpu.pace import Pace, TooMuchWork
from rlkernel.evaluator.cpu.races import Race
from rlkernel.evaluator.cpu.reuse import Reuse
from rlkernel.evaluator.cpu.sampling import MOST_SAMPLED, Sampling, TooManyKinds
from rlkernel.evaluator.cpu.statements import at_statement
from rlkernel.evaluator.devices import ANY_ROOM, DeviceProfile, Room
from rlkernel.evaluator.judging.costs.counts import Counts
from rlkernel.evaluator.judging.costs.operator_costs import NoCost
from rlkernel.evaluator.judging.costs.roofline import BYTES_OF_ONE, resident_programs
from rlkernel.evaluator.judging.costs.special import special_of
from rlkernel.evaluator.program import constexpr_functions
from rlkernel.evaluator.program.kernel_rules import binding_value
from rlkernel.evaluator.program.kernel_source import KernelSet
from rlkernel.evaluator.program.kernel_text import canonical
from rlkernel.evaluator.program.replay import tensors_in
from rlkernel.evaluator.program.schema import Config, Function, Launch, Program, block_shape
from rlkernel.evaluator.program.values import Descriptor, ScalarRef

MOST_FOLLOWED = 10_000.0
"""The work of a launch that is priced, see `pace`, above which its loops are shortened."""
GRID_LIMITS = (2**31 - 1, 2**16 - 1, 2**16 - 1)
"""Programs that a GPU starts along each dimension."""


class KernelFailed(Exception):
    """The kernel's body raised while it was interpreted, or a GPU would not start it."""


class Idle(NoCost):
    """A kernel has a part in the output, but so many programs of its grid do nothing that no other was found."""

    def __init__(self, where: str) -> None:
        Exception.__init__(
            self,
            f"{where}none of {MOST_SAMPLED} programs that were drawn from the grid writes anything, which has no modelled cost: "
            "without a GPU, launch no more programs than there is work for",
        )


class _CheckedKernels(KernelSet):
    """Kernel functions as plain Python functions over interpreter tensors."""

    def __init__(self, program: Program, wrap: Callable[[Any, Function], Any], extra: dict[str, Any]) -> None:
        super().__init__(program, wrap, extra)
        self._stopping = turns.functions_with_atomics(program)

    def _wrap_constexpr(self, fn: Any, function: Function) -> Any:
        return constexpr_functions.interpreted(fn)

    def _compile(self, index: int) -> dict[str, Any]:
        self._index = index
        return super()._compile(index)

    def _transform(self, definition: ast.FunctionDef) -> ast.FunctionDef:
        names = limit_text.alone(definition)  # before there are other numbers in the tree
        tree = KernelWords(self._functions[self._index].source).visit(definition)
        tree = turns.Stops().visit(tree) if self._index in self._stopping else tree
        assert isinstance(tree, ast.FunctionDef)
        return limit_text.held(tree, self._functions[self._index].source, names)


def _wrap(fn: Any, function: Any) -> Any:
    fn.fn = fn  # `tl.reduce` and `tl.associative_scan` ask a combine function for `.fn`
    return fn


class Interpreter:
    """Launches of one Program, on the process's one machine."""

    def __init__(self, program: Program, profile: DeviceProfile | None = None) -> None:
        """`profile`: the card on which launches are priced, if any are."""
        self.program = program
        self._profile = profile
        self.machine, semantic = the_machine()
        if profile is not None:
            self.machine.special = special_of(profile)
        self._semantic = semantic
        self._room = ANY_ROOM
        """What the binary of the launch takes that is priced."""
        self.idle: dict[int, int] = {}
        """Functions of which no program was found that writes, and the lines of their launches: so far, in dry launches."""
        self.known: dict[int, bytes] = {}
        """What lies in memory, by the identity of its storage, as far as that is known in dry launches."""
        self._shortened: set[int] = set()
        """Functions of which a launch was too much work to be followed as it is."""
        self._kernels = _CheckedKernels(program, _wrap, {**words(semantic), **limit_text.words(self.machine), **turns.WORDS})

    def _arguments(self, launch: Launch, config: Config, args: dict[str, Any], addresses: dict[int, int]) -> dict[str, Any]:
        function = self.program.functions[launch.function]
        bound: dict[str, Any] = {}
        for name in canonical(function).parameters:
            if name in config.constants:
                bound[name] = binding_value(config.constants[name], self._kernels.get)
                continue
            value = args[name]
            if isinstance(value, torch.Tensor):
                bound[name] = _pointer(value, addresses)
            elif isinstance(value, Descriptor):
                bound[name] = self._descriptor(value, block_shape(name, value, config), addresses)
            else:
                bound[name] = scalar(value)
                if self.machine.dry and isinstance(launch.args.get(name), ScalarRef):  # a number of weights, made up
                    mark(bound[name])
        return bound

    def _descriptor(self, value: Descriptor, block: tuple[int, ...], addresses: dict[int, int]) -> Any:
        """As Triton's own interpreter binds one; its loads and stores are checked element by element like any other."""
        strides = [triton_interpreter._implicit_cvt(stride) for stride in value.strides[:-1]]
        return self._semantic.make_tensor_descriptor(
            base=_pointer(value.base, addresses), shape=[triton_interpreter._implicit_cvt(size) for size in value.shape],
            strides=[*strides, tl.constexpr(1)], block_shape=[tl.constexpr(size) for size in block], padding_option=value.padding,
        )  # fmt: skip

    def _reuse(self, config: Config, extents: list[tuple[int, int]]) -> Reuse:
        """What tells how late a program of this launch reads something again."""
        if self._profile is None:
            return Reuse()
        at_once = min(math.prod(config.grid), resident_programs(config.options.get("num_warps", 4), self._profile, self._room))
        return Reuse([end - start for start, end in extents], at_once, self._profile.l2_bytes)

    def _fetching(self, config: Config) -> Fetching:
        """What tells how long loads of this launch take."""
        if self._profile is None:
            return Fetching()
        cycles = self._profile.processors * self._profile.sm_khz / 1000
        per_cycle = BYTES_OF_ONE * self._profile.dram_bytes_per_us / cycles
        shared = registers = math.inf
        if self._room is not ANY_ROOM:
            shared = self._room.shared_bytes
            registers = 4.0 * 32 * config.options.get("num_warps", 4) * self._room.registers
        return Fetching(math.prod(config.grid), per_cycle, config.options.get("num_stages", STAGES), shared, registers)

    def price(self, launch: Launch, config: Config, args: dict[str, Any], room: Room = ANY_ROOM) -> Counts:
        """Sample the grid, and shorten its loops where a few programs are too much work. `room`: what its binary takes of a
        processor. Raises OutOfBounds, KernelFailed,
        KernelRejected, DecidedByMemory."""
        machine, self._room = self.machine, room
        try:
            if launch.function not in self._shortened:
                machine.pace = Pace(MOST_FOLLOWED)
                return self.launch(launch, config, args, dry=True)
        except TooMuchWork:
            self._shortened.add(launch.function)
        finally:
            machine.pace = None
        try:
            machine.shortens = True
            return self.launch(launch, config, args, dry=True)
        except (NoCost, KernelFailed):  # which may hold for the shortened loops alone
            pass
        finally:
            machine.shortens = False
        return self.launch(launch, config, args, dry=True)

    def count_again(self, launch: Launch, counts: Counts) -> None:
        """A launch is priced as one that is alike: of what that one has left on the machine, only efforts are added up."""
        self.machine.efforts.note(self.program.functions[launch.function].source, counts)

    def launch(self, launch: Launch, config: Config, args: dict[str, Any], *, dry: bool) -> Counts:
        """Run the grid (or, dry, sample it). Raises OutOfBounds, KernelFailed, KernelRejected, TooMuchWork where the machine has
        a pace, and, dry, DecidedByMemory."""
        tensors = tensors_in(args)
        extents, addresses = _dry_extents(tensors) if dry else _real_extents(tensors)
        machine = self.machine
        machine.map(extents, dry=dry)
        if not dry:
            machine.limits.note_shapes(tensor.shape for tensor in tensors)
        storages = list(dict.fromkeys(tensor.untyped_storage()._cdata for tensor in tensors))
        held = {place: self.known[one] for place, one in enumerate(storages) if dry and one in self.known}
        machine.known = KnownMemory(held)
        machine.reuse = self._reuse(config, extents) if dry else Reuse()
        machine.chain = Chain(config.options.get("num_warps", 4), self._fetching(config))
        machine.counts, machine.left_out, machine.adds_in_little, machine.elements_meet = Counts(), False, False, False
        machine.lost, machine.outcomes = {}, Outcomes()
        kernel = self._kernels.get(launch.function)
        bound = self._arguments(launch, config, args, addresses)
        machine.set_grid_dim(*config.grid)
        source = self.program.functions[launch.function].source
        for axis, programs in enumerate(config.grid):
            machine.extents.note((source, axis), programs)
        sampling = Sampling(machine, config.grid)
        followed = sampling.programs() if dry else range(config.grid[0] * config.grid[1] * config.grid[2])
        name, line = self.program.functions[launch.function].name, launch.line
        if any(size > limit for size, limit in zip(config.grid, GRID_LIMITS, strict=True)):
            raise KernelFailed(f"line {line}: kernel {name}: a GPU starts no grid of {config.grid}")
        seed = machine.turns if inspect.isgeneratorfunction(kernel) and not dry else None
        if machine.pace is not None and not dry:
            machine.pace.launch(config.grid[0] * config.grid[1] * config.grid[2])
        try:
            with np.errstate(all="ignore"):
                turns.run_programs(lambda: kernel(**bound), followed, machine, seed)
        except TooMuchWork:
            raise
        except (DecidedByMemory, TooManyKinds) as error:
            raise type(error)(f"line {line}: kernel {name}: ") from error
        except OutOfBounds as error:
            raise OutOfBounds(f"line {line}: kernel {name}: {error}{at_statement(error)}") from error
        except Exception as error:  # the kernel's failure becomes data
            raise KernelFailed(f"line {line}: kernel {name}: {_describe(error)}{at_statement(error)}") from error
        counts = sampling.counts() if dry else machine.counts
        machine.efforts.note(source, counts)
        for place in counts.stored if held else ():
            self.known.pop(storages[place] if 0 <= place < len(storages) else -1, None)
        if sampling.uneven:
            machine.extents.note_uneven(source)
        if machine.left_out:
            machine.extents.note_left_out(source)
        if machine.elements_meet:
            machine.extents.note_meeting(source)
        if machine.adds_in_little:
            machine.extents.note_adding_in_little(source)
        for place, lost in machine.lost.items():
            machine.extents.note_lost(source, place, *lost)
        for at, answer, share in machine.outcomes.shares():
            machine.extents.note_outcome(source, at, answer, share)
        if sampling.idle:
            self.idle[launch.function] = launch.line
        return counts


def _pointer(tensor: torch.Tensor, addresses: dict[int, int]) -> Any:
    kind = tl.pointer_type(_tl_dtype(tensor.dtype))
    return tl.tensor(TensorHandle(np.array([addresses[id(tensor)]], dtype=np.uint64), kind), kind)


def _describe(error: Exception) -> str:
    if isinstance(error, Race) or isinstance(error.__cause__, (OutOfBounds, Race)):
        return str(error if isinstance(error, Race) else error.__cause__)
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:200] if text else ''}"


_DTYPES = {
    "float32": tl.float32, "float16": tl.float16, "bfloat16": tl.bfloat16, "float64": tl.float64, "int8": tl.int8,
    "int16": tl.int16,
    "int32": tl.int32, "int64": tl.int64, "uint8": tl.uint8, "uint16": tl.uint16, "uint32": tl.uint32, "uint64": tl.uint64,
    "bool": tl.int1, "float8_e5m2": tl.float8e5, "float8_e4m3fn": tl.float8e4nv,
}  # fmt: skip


def _tl_dtype(dtype: torch.dtype) -> Any:
    name = str(dtype).removeprefix("torch.")
    if name not in _DTYPES:
        raise KernelFailed(f"a kernel is given a tensor of {name}, which Triton lacks")
    return _DTYPES[name]


def _real_extents(tensors: list[torch.Tensor]) -> tuple[list[tuple[int, int]], dict[int, int]]:
    extents: dict[int, tuple[int, int]] = {}
    for tensor in tensors:
        storage = tensor.untyped_storage()
        extents.setdefault(storage.data_ptr(), (storage.data_ptr(), storage.data_ptr() + storage.nbytes()))
    return list(extents.values()), {id(t): t.data_ptr() for t in tensors}


def _dry_extents(tensors: list[torch.Tensor]) -> tuple[list[tuple[int, int]], dict[int, int]]:
    """Made-up addresses, far apart, aligned like an allocator's."""
    bases: dict[int, int] = {}
    extents: list[tuple[int, int]] = []
    for tensor in tensors:
        storage = tensor.untyped_storage()
        if storage._cdata not in bases:
            bases[storage._cdata] = (len(bases) + 1) << 44
            extents.append((bases[storage._cdata], bases[storage._cdata] + storage.nbytes()))
    offsets = {id(t): int(t.storage_offset()) * t.element_size() for t in tensors}
    return extents, {id(t): bases[t.untyped_storage()._cdata] + offsets[id(t)] for t in tensors}
