"""The passes over memory that a reference's own error takes (`own_error.py`), made by torch's operators.

A pass reads the reference's output, the same in float64, and further tensors that err in their own way, all of one shape. What is
not finite in one of the first two, or huge, does not count. Source: ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

BLOCK = 1 << 26
"""Elements of an output that are compared at a time."""


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums over the elements that count."""

    count: float
    """How many there are."""
    size: float
    """The sum of the squares of the exact values."""
    total: float
    """The sum of the exact values."""
    given: float
    """The sum of the squares of the output."""
    sides: tuple[tuple[float, float], ...]
    """The sum of the squared errors and the number of finite elements: of the output, and of each further tensor."""
    along: float
    """The sum of the last one's errors times the exact values."""


class Passes(Protocol):
    """Two passes over an output, its exact values and what else is held against these."""

    def sums(self) -> Sums:
        """The first pass. A GPU is waited for."""
        ...

    def extremes(self, root: float, mean: float) -> tuple[float, list[float]]:
        """The sum of the squared distances of the exact values from their `mean`; then of the output and of each further tensor
        the worst element, relative to |element| + `root`. A GPU is waited for."""
        ...


Measure = Callable[[Sequence[torch.Tensor], float], Passes]
"""(the output, its exact values and further tensors, the magnitude above which values are huge)"""


class ByTorch:
    """The passes in blocks, so that little memory is taken beside the tensors."""

    def __init__(self, tensors: Sequence[torch.Tensor], huge: float) -> None:
        self._blocks, self._huge = blocks(list(tensors)), huge
        # Several blocks would take much memory together.
        self._whole = [_counted(self._blocks[0], huge)] if len(self._blocks) == 1 else None

    def sums(self) -> Sums:
        """See `Passes`."""
        count, size, total, given, *sides = torch.stack([_sums(block) for block in self._counted()]).sum(0).tolist()
        along = sides.pop()
        return Sums(count, size, total, given, tuple(zip(sides[::2], sides[1::2], strict=True)), along)

    def extremes(self, root: float, mean: float) -> tuple[float, list[float]]:
        """See `Passes`."""
        rows = torch.stack([_extremes(block, root, mean) for block in self._counted()])
        return float(rows[:, 0].sum()), rows[:, 1:].amax(0).tolist()

    def _counted(self) -> Iterable[list[torch.Tensor]]:
        return self._whole or (_counted(block, self._huge) for block in self._blocks)


def blocks(tensors: list[torch.Tensor]) -> list[list[torch.Tensor]]:
    """Views of the tensors, which have one shape, by parts of at most about `BLOCK` elements, so that little memory is taken
    beside them."""
    shape = tensors[0].shape
    if tensors[0].numel() <= BLOCK or not shape:
        return [tensors]
    dim = max(range(len(shape)), key=shape.__getitem__)
    rows = max(1, BLOCK * shape[dim] // tensors[0].numel())
    return [[t.narrow(dim, start, min(rows, shape[dim] - start)) for t in tensors] for start in range(0, shape[dim], rows)]


def _counted(block: list[torch.Tensor], huge: float) -> list[torch.Tensor]:
    """The elements that are finite and not huge, in float64. A GPU is waited for."""
    found, exact = block[:2]
    here = torch.isfinite(found).logical_and_(torch.isfinite(exact))
    if huge < math.inf:
        here.logical_and_(found.abs() <= huge)
    if bool(here.all()):  # as nearly always: what follows costs several passes per tensor
        return [t.double() for t in block]
    return [t[here].double() for t in block]


def _sums(counted: list[torch.Tensor]) -> torch.Tensor:
    """Sums over what counts of one block: the number of elements, the sums of their squares, of themselves, and of the squares
    of `found`; then of `found` and of each further tensor the squared errors and the number of finite elements; then the last
    one's errors times the exact values."""
    mine, target, *rest = counted
    count = torch.full((), float(target.numel()), dtype=torch.float64, device=target.device)
    sides = [x for t in (mine, *rest) for x in ((t - target).square().sum(), torch.isfinite(t).sum().double())]
    along = (((rest or [mine])[-1] - target) * target).sum()
    return torch.stack([count, target.square().sum(), target.sum(), mine.square().sum(), *sides, along])


def _extremes(counted: list[torch.Tensor], root: float, mean: float) -> torch.Tensor:
    """Misses in what counts of one block: the sum of the squared distances from the mean; then of `found` and of each further
    tensor the worst element, relative to |element| + root mean square."""
    mine, target, *rest = counted
    if not target.numel():
        return torch.zeros(2 + len(rest), dtype=torch.float64, device=target.device)
    base = (target.abs() + root).clamp_min_(1e-30)
    worst = [((t - target).abs_() / base).amax() for t in (mine, *rest)]
    return torch.stack([(target - mean).square().sum(), *worst])
