"""How long PyTorch's own kernels take where neither bytes nor arithmetic bound them, on the side of whoever calls them.

    operands of several shapes   each element's addresses are computed by divisions (TensorIterator), 1.6 elements in a cycle and
                                 processor
    a softmax of long rows       a block for each row, which it reads three times and takes exponentials of twice
    a scan along rows            512 threads for some rows, in steps that load, scan in shared memory and store, one after another
    a scatter that adds          an atomic for each element, of which those on one word wait for one another
    a log-sum-exp                nine kernels: maximum, difference, exponential, sum, logarithm, and what infinities need

Example: a running sum of 1,024 rows of 16,384 took 188 us on an H200, and its bytes take 31. Blocks are 8 rows of 64 threads, so
there are 128 steps of 128 elements, 1.4 us each: 177 us. The threads are those of `ATen/native/cuda/ScanUtils.cuh`, the
kernels of a log-sum-exp those of `ATen/native/ReduceOps.cpp`. The rates are fitted to references of the shipped corpus.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from rlkernel.evaluator.devices import DeviceProfile
from rlkernel.evaluator.judging.costs.counts import ATOMIC_BYTES, ATOMICS_PER_US
from rlkernel.evaluator.judging.costs.operator_costs import COMBINES, scattered_elements
from rlkernel.evaluator.program.operators import argument, base_name, operator
from rlkernel.evaluator.program.schema import Op

Tensors = Sequence[torch.Tensor]

PER_ADDRESS = 175.0
"""Operations, in units of half a multiply-add, in the time of an element of operands of several shapes: 0.38 million elements in
a microsecond of an H200."""
PER_EXPONENTIAL = 134.0
"""The same of a softmax of long rows: 0.5 million."""
LONG_ROW = 1024
"""Elements up to which a warp holds a row of a softmax."""
SCANS = {"cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"}
SCAN_THREADS, SCAN_BLOCKS = 512, 4
"""Threads of a block that scans, and how many blocks a processor runs at once."""
SCAN_STEP_US, SCAN_BLOCK_US = 1.05, 0.33
"""What a step takes, and what it takes more for each block of a processor."""
LOGSUMEXP_KERNELS, LOGSUMEXP_PASSES = 9, 6.0


def kernels_of(step: Op) -> int:
    """How many kernels an operator is."""
    return LOGSUMEXP_KERNELS if base_name(step.op) == "logsumexp" else 1


def slow_us(step: Op, read: Tensors, made: Tensors, profile: DeviceProfile) -> float:
    """What an operator takes at least because of how its kernel is made, microseconds."""
    name = base_name(step.op)
    if not made or not read:
        return 0.0
    if name in SCANS:
        return _scan_us(read[0], int(argument(step, "dim", -1)), profile)
    if name in ("_softmax", "_log_softmax") and _is_long(read[0], int(argument(step, "dim", -1))):
        return PER_EXPONENTIAL * made[0].numel() / profile.fp32_flops_per_us
    if name == "logsumexp":
        addresses = PER_ADDRESS * read[0].numel() / profile.fp32_flops_per_us
        return addresses + (LOGSUMEXP_PASSES - 2) * read[0].nbytes / profile.dram_bytes_per_us
    if name in COMBINES or argument(step, "accumulate", False):
        return _atomics_us(step, read, made[0], profile)
    if torch.Tag.pointwise in operator(step.op).tags and any(1 < t.numel() < made[0].numel() for t in read):
        return PER_ADDRESS * made[0].numel() / profile.fp32_flops_per_us
    return 0.0


def _atomics_us(step: Op, read: Tensors, made: torch.Tensor, profile: DeviceProfile) -> float:
    """The time of an atomic for each element that a scatter adds, on words that are changed as often as one another."""
    elements, width = scattered_elements(step, read), made.element_size()
    rows = base_name(step.op).startswith("index_") and made.dim() > 1
    through_l2 = elements * (2.0 * width if rows else ATOMIC_BYTES) / profile.l2_bytes_per_us
    return max(through_l2, elements / max(1, made.numel()) / ATOMICS_PER_US)


def _is_long(rows: torch.Tensor, dim: int) -> bool:
    """Whether a softmax is along the last axis, and longer than a warp holds."""
    return rows.dim() > 0 and dim % rows.dim() == rows.dim() - 1 and rows.shape[-1] > LONG_ROW


def _scan_us(given: torch.Tensor, dim: int, profile: DeviceProfile) -> float:
    """The time of a scan along the last axis of several rows; others are bound by their bytes.

    A row of 2^c and 2^r rows: 2^((9 + c - r) / 2) threads for a row, at least 16, which scan twice as many elements in a step.
    """
    length = given.shape[-1] if given.dim() else 1
    if given.dim() < 2 or dim % given.dim() != given.dim() - 1 or given.numel() in (0, length):
        return 0.0
    rows = given.numel() // length
    each = 1 << min(9, max(4, (9 + _log2(length) - _log2(rows)) // 2))
    blocks = math.ceil(rows / (SCAN_THREADS // each))
    beside = min(SCAN_BLOCKS, math.ceil(blocks / profile.processors))
    waves = math.ceil(blocks / (SCAN_BLOCKS * profile.processors))
    return waves * math.ceil(length / (2 * each)) * (SCAN_STEP_US + SCAN_BLOCK_US * beside)


def _log2(number: int) -> int:
    """The power of two that is at least as large."""
    return max(0, number - 1).bit_length()
