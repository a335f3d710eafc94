"""How far an output may be from the exact result: measured on the reference, not chosen.

The reference is computed twice, in its own dtype and in float64, and in float64 once more on inputs that are moved by their own
rounding. What differs is the reference's own error: of the whole output (relative to its norm) and of its worst element
(relative to |element| + root mean square). A candidate may err 8 times as much, and always as much as a floor per dtype allows.

Two things are left out of all measures, because they would hide what is beside them: values that are not finite, and huge ones,
such as -1e9 behind a mask. Huge values begin above a gap of a factor of 1000 in the sorted magnitudes. Where an output varies by
less than the floor, the floor is a quarter of its spread: an answer that is constant near the mean is wrong. Source: ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch

from rlkernel.evaluator.messages.judgement import Tolerance

FLOOR = {torch.float64: 1e-9, torch.float32: 5e-5, torch.float16: 3e-3, torch.bfloat16: 2e-2}
"""Norm-relative error that is always allowed,
by the reference output's dtype. float32's lies under what tf32 or half precision give."""
TF32_FLOOR = 2e-3
"""float32's floor when tf32 is allowed on both sides."""
ELEMENT_FLOOR = {torch.float64: 1e-7, torch.float32: 1e-3, torch.float16: 2e-2, torch.bfloat16: 1e-1}
"""Error of one element, relative to |element| + root mean square, that is always allowed: in half precision about 15
roundings."""
TF32_ELEMENT_FLOOR = 2e-2
ELEMENT_CAP = 0.4
"""Never allowed of one element: one that is zero in place of the root mean square has 0.5."""
REFERENCE_FACTOR = 8.0
"""Allowed error in units of the reference's own."""
GAP = 1e3
"""Factor between neighbours in the sorted magnitudes above which values are huge."""
ORDINARY = 1e-3
"""Least share of elements below the gap."""
REPEATED = 0.01
"""Share of different values among those above a gap up to which they are fill values."""
MAX_GAPS = 16
SAMPLE = 1 << 18
"""Elements whose magnitudes are sorted."""
SPREAD = 0.25
"""Share of an output's standard deviation that a floor never exceeds, where the reference resolves it."""
BLOCK = 1 << 26
"""Elements of an output that are compared at a time."""
FEW = 8
"""Elements below which a standard deviation says nothing."""
UNSTEADY = 0.05
"""Norm-relative error from which on the reference is its own measure: it rounds too much, or jumps between values."""
ROUNDED = 0.3
"""Norm-relative error up to which the reference rounds, and does not jump."""


@dataclass(frozen=True, slots=True)
class OwnError:
    """What the reference itself misses by."""

    norm: float = 0.0
    """Relative to the output's norm."""
    element: float = 0.0
    """Of the worst element, relative to |element| + root mean square."""
    spread: float = 1.0
    """Standard deviation by root mean square: small where the output is nearly constant."""
    huge: float = math.inf
    """Magnitude above which values are compared on their own."""

    @property
    def steady(self) -> bool:
        """Whether the float64 result is the same function of the inputs as the reference."""
        return self.norm < UNSTEADY

    def times(self, factor: float) -> OwnError:
        return replace(self, norm=factor * self.norm, element=factor * self.element)


def huge_from(values: torch.Tensor) -> float:
    """The magnitude above which values are huge; infinity where there is no gap. `values`: an output of the reference."""
    flat = values.detach().reshape(-1)
    if flat.numel() > SAMPLE:
        flat = flat[torch.randint(flat.numel(), (SAMPLE,), device=flat.device)]
    sizes = flat.abs().to(torch.promote_types(flat.dtype, torch.float32))
    sizes = sizes[torch.isfinite(sizes) & (sizes > 0)].sort().values
    least = max(2, int(ORDINARY * sizes.numel()))
    if sizes.numel() <= least:
        return math.inf
    below, above = sizes[least - 1 : -1], sizes[least:]
    for place in torch.nonzero(above / below >= GAP).reshape(-1).tolist()[:MAX_GAPS]:
        if _hides(sizes[least + place :], sizes.numel()):
            return math.sqrt(float(below[place])) * math.sqrt(float(above[place]))
    return math.inf


def _hides(above: torch.Tensor, total: int) -> bool:
    """Whether values above a gap are a minority, or few values again and again: not the bulk of an output, below which lies
    what is left of a cancellation."""
    return above.numel() <= total // 2 or torch.unique_consecutive(above).numel() <= max(8, int(REPEATED * above.numel()))


def errors(found: torch.Tensor, exact: torch.Tensor) -> tuple[float, float]:
    """Norm-relative error, and the largest |difference| / (|element| + root mean square)."""
    wide = torch.promote_types(exact.dtype, torch.float32)
    target = exact.to(wide)
    difference = found.to(wide) - target
    size = torch.linalg.vector_norm(target).clamp_min(1e-30)
    miss = torch.linalg.vector_norm(difference)
    worst = (difference.abs_() / (target.abs() + size / math.sqrt(target.numel())).clamp_min(1e-30)).amax()
    relative, single = torch.stack([miss / size, worst]).tolist()
    return relative, single


def own_error(found: torch.Tensor, exact: torch.Tensor, nudged: torch.Tensor | None = None) -> OwnError:
    """The reference's error: `found` in its own dtype, `exact` in float64, `nudged` in float64 on inputs moved by their rounding.
    Integers have none."""
    if not (found.is_floating_point() or found.is_complex()) or found.shape != exact.shape or not found.numel():
        return OwnError()
    if found.is_complex():
        found, exact = torch.view_as_real(found), torch.view_as_real(exact)
        nudged = None if nudged is None else torch.view_as_real(nudged)
    if nudged is not None and nudged.shape != exact.shape:
        nudged = None
    huge = huge_from(found)
    blocks = _blocks([found, exact] if nudged is None else [found, exact, nudged])
    sums = sum(_sums(block, huge) for block in blocks)
    count, size, total, miss, moved, steady = sums.tolist()  # type: ignore[union-attr]
    if not count:
        return OwnError(huge=huge)
    norm, other_norm = math.sqrt(miss) / _above(math.sqrt(size)), math.sqrt(moved) / _above(math.sqrt(size))
    root = math.sqrt(size / count)
    rows = torch.stack([_extremes(block, huge, root, total / count) for block in blocks])
    (element, other_element), variance = rows[:, :2].amax(0).tolist(), float(rows[:, 2].sum()) / max(1, count - 1)
    if nudged is not None and steady == count and other_norm < UNSTEADY:
        norm, element = max(norm, other_norm), max(element, other_element)
    spread = math.sqrt(variance) / max(root, 1e-300) if count >= FEW else 1.0
    return OwnError(norm, element, min(1.0, spread), huge)


def _above(size: float) -> float:
    return max(size, 1e-30)


def _blocks(tensors: list[torch.Tensor]) -> list[list[torch.Tensor]]:
    """Views of the tensors, which have one shape, by parts of at most about `BLOCK` elements, so that little memory is taken
    beside them."""
    shape = tensors[0].shape
    if tensors[0].numel() <= BLOCK or not shape:
        return [tensors]
    dim = max(range(len(shape)), key=shape.__getitem__)
    rows = max(1, BLOCK * shape[dim] // tensors[0].numel())
    return [[t.narrow(dim, start, min(rows, shape[dim] - start)) for t in tensors] for start in range(0, shape[dim], rows)]


def _counted(block: list[torch.Tensor], huge: float) -> list[torch.Tensor]:
    """The elements that are finite and not huge, in float64."""
    found, exact = block[:2]
    here = torch.isfinite(found) & torch.isfinite(exact) & (found.abs() <= huge)
    return [t[here].double() for t in block]


def _sums(block: list[torch.Tensor], huge: float) -> torch.Tensor:
    """Of one block: the number of elements that count, the sums of their squares and of themselves, of the squared errors of
    `found` and of `nudged`, and the number of finite elements of `nudged`."""
    mine, target, *rest = _counted(block, huge)
    moved = rest[0] if rest else target
    count = torch.tensor(float(target.numel()), dtype=torch.float64, device=target.device)
    return torch.stack([
        count, target.square().sum(), target.sum(), (mine - target).square().sum(), (moved - target).square().sum(),
        torch.isfinite(moved).sum().double(),
    ])  # fmt: skip


def _extremes(block: list[torch.Tensor], huge: float, root: float, mean: float) -> torch.Tensor:
    """Of one block: the worst element of `found` and of `nudged`, relative to |element| + root mean square, and the sum of the
    squared distances from the mean."""
    mine, target, *rest = _counted(block, huge)
    if not target.numel():
        return torch.zeros(3, dtype=torch.float64, device=target.device)
    base = (target.abs() + root).clamp_min_(1e-30)
    worst = ((mine - target).abs_() / base).amax()
    other = ((rest[0] - target).abs_() / base).amax() if rest else torch.zeros_like(worst)
    return torch.stack([worst, other, (target - mean).square().sum()])


def tolerance(dtype: torch.dtype, own: OwnError, *, tf32: bool) -> Tolerance:
    """What is allowed of an output of this dtype where the reference's own error is `own`; 0 for integers, which must be
    equal."""
    if not (dtype.is_floating_point or dtype.is_complex):
        return Tolerance(0.0, 0.0)
    loose = tf32 and dtype is torch.float32
    floor = TF32_FLOOR if loose else FLOOR.get(dtype, FLOOR[torch.float32])
    if own.spread > REFERENCE_FACTOR * max(own.norm, torch.finfo(dtype).eps / 4):
        floor = min(floor, SPREAD * own.spread)
    least = TF32_ELEMENT_FLOOR if loose else ELEMENT_FLOOR.get(dtype, ELEMENT_FLOOR[torch.float32])
    element = min(ELEMENT_CAP, max(least, REFERENCE_FACTOR * own.element))
    return Tolerance(max(floor, REFERENCE_FACTOR * own.norm), element, own.huge)


def beside(dtype: torch.dtype, own: OwnError, *, tf32: bool) -> Tolerance:
    """What is allowed from the float64 result where the reference is its own measure: a candidate that is no farther from it than
    the reference, such as one that rounds less, is right, too."""
    floor = tolerance(dtype, OwnError(spread=own.spread, huge=own.huge), tf32=tf32)
    if own.norm > ROUNDED:
        return floor
    return replace(floor, norm=max(floor.norm, own.norm), element=min(ELEMENT_CAP, max(floor.element, own.element)))
