"""How far an output may be from the exact result: measured on the reference, not chosen.

The reference is computed twice, in its own dtype and in float64, and in float64 once more on inputs that are moved by their own
rounding. What differs is the reference's own error: of the whole output (relative to its norm) and of its worst element
(relative to |element| + root mean square). A candidate may err 8 times as much, and always as much as a floor per dtype allows.

Where a candidate may use tf32 and the reference may not, a float32 output may besides miss by what tf32 does to it: 3 times the
error of the float64 reference whose products' operands are rounded to tf32, or 1.25 times that of one whose operands are cut off
(`tensor_cores.py`). bfloat16 rounds 8 times as coarsely as tf32. A reference without products has no such error. It adds at most
`CORES_CAP`, and less than an output varies by: where tf32 in all products misses by more, tf32 in some of them may be right.
Where it misses by more than `ROUNDED`, nothing is added.

Operands that are cut off are too small, all of them, by 0.034 % on average. A long sum of positive products, such as those of
`torch.rand`, is then 0.07 % too small and otherwise nearly exact, while it may vary by no more than that. There an output may be
too small by such a factor, which all its values share; what is left when the factor is divided out must be within the bounds.

Two things are left out of all measures, because they would hide what is beside them: values that are not finite, and huge ones,
such as -1e9 behind a mask. Huge values begin above a gap of a factor of 1000 in the sorted magnitudes. Where an output varies by
less than the floor, the floor is a quarter of its spread: an answer that is constant near the mean is wrong.

Whole numbers must be equal, but for those that the reference itself rounds to a neighbour: of quantised values, which were
floating-point numbers near a half, float64 rounds some the other way. A candidate may miss 8 times as many, by one. Source: ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from rlkernel.evaluator.messages.judgement import Tolerance
from rlkernel.evaluator.program.codes import VALUED, equal_or_wrong, valued
from rlkernel.types import Precision

STEP = {dtype: torch.finfo(dtype).eps for dtype in VALUED}
"""The step from one code to the next, relative."""
FLOOR = {torch.float64: 1e-9, torch.float32: 5e-5, torch.float16: 3e-3, torch.bfloat16: 2e-2} | {
    dtype: 0.4 * step for dtype, step in STEP.items()
}
"""Norm-relative error that is always allowed,
by the reference output's dtype. float32's lies under what tf32 or half precision give."""
TF32_FLOOR = 2e-3
"""float32's floor when tf32 is allowed on both sides."""
NEAREST_FACTOR = 3.0
"""Allowed error in units of that of operands that are rounded to tf32."""
CUT_FACTOR = 1.25
"""Allowed error in units of that of operands that are cut off to tf32: these err alike, so that little room is needed."""
EXTREME_FACTOR = 2.0
"""The same once more for the worst element, which another order of summation may make twice as bad; the norm keeps its bound."""
CORES_CAP = 0.02
"""What tf32 may add at most to a norm's bound."""
ELEMENT_FLOOR = {torch.float64: 1e-7, torch.float32: 1e-3, torch.float16: 2e-2, torch.bfloat16: 1e-1} | {
    dtype: 1.05 * step for dtype, step in STEP.items()
}
"""Error of one element, relative to |element| + root mean square, that is always allowed: in half precision about 15
roundings, of codes the next one."""
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
WHOLE = (torch.int8, torch.uint8, torch.int16, torch.int32)
"""Dtypes of quantised values. int64 is that of indices, and bool that of conditions."""
MOST_ROUNDED = 0.05
"""Share of an output's whole numbers that may be off by one at most."""
FEW = 8
"""Elements below which a standard deviation says nothing."""
UNSTEADY = 0.05
"""Norm-relative error from which on the reference is its own measure: it rounds too much, or jumps between values."""
ROUNDED = 0.3
"""Norm-relative error up to which the reference rounds, and does not jump."""


@dataclass(frozen=True, slots=True)
class Cores:
    """An output as tensor cores may give it, in float64 otherwise."""

    nearest: torch.Tensor
    """With the operands of products rounded to tf32."""
    cut: torch.Tensor
    """With these cut off to tf32."""


@dataclass(frozen=True, slots=True)
class OwnError:
    """What the reference itself misses by."""

    norm: float = 0.0
    """Relative to the output's norm."""
    element: float = 0.0
    """The error of the worst element, relative to |element| + root mean square; of whole numbers the share that is off by one."""
    spread: float = 1.0
    """Standard deviation by root mean square: small where the output is nearly constant."""
    huge: float = math.inf
    """Magnitude above which values are compared on their own."""
    cores: float = 0.0
    """What tf32 may make of the norm, as a bound; 0 where it may not be used, or changes nothing."""
    cores_element: float = 0.0
    """The same of the worst element."""
    shrink: float = 0.0
    """The share by which operands that are cut off to tf32 make all values too small together, as a bound."""
    cores_rest: float = 0.0
    """What tf32 may make of the norm beside that, as a bound."""

    @property
    def blurred(self) -> bool:
        """Whether tf32 misses by so much that it is wrong here."""
        return not self.within_cores and not self.shrunk

    @property
    def within_cores(self) -> bool:
        """Whether tf32 misses by as little as it must."""
        return self.cores <= self.most_of_cores and self.cores_element <= ELEMENT_CAP

    @property
    def shrunk(self) -> bool:
        """Whether tf32 misses by too much only because all values are too small together."""
        alike = 0.0 < self.shrink <= CORES_CAP and self.cores_rest <= self.most_of_cores
        return alike and not self.within_cores and self.cores_element <= ELEMENT_CAP

    @property
    def most_of_cores(self) -> float:
        """What tf32 may add at most: less than an output varies by, so that its mean alone is wrong."""
        return min(CORES_CAP, SPREAD * self.spread)

    @property
    def steady(self) -> bool:
        """Whether the float64 result is the same function of the inputs as the reference."""
        return self.norm < UNSTEADY

    def times(self, factor: float) -> OwnError:
        return replace(self, norm=factor * self.norm, element=factor * self.element)

    def with_cores(self, factor: float) -> OwnError:
        """The same with so many times the error of tf32."""
        return replace(
            self, cores=factor * self.cores, cores_element=factor * self.cores_element,
            shrink=factor * self.shrink, cores_rest=factor * self.cores_rest,
        )  # fmt: skip


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
    found, exact = valued(found), valued(exact)
    wide = torch.promote_types(exact.dtype, torch.float32)
    target = exact.to(wide)
    difference = found.to(wide) - target
    size = torch.linalg.vector_norm(target).clamp_min(1e-30)
    miss = torch.linalg.vector_norm(difference)
    worst = (difference.abs_() / (target.abs() + size / math.sqrt(target.numel())).clamp_min(1e-30)).amax()
    relative, single = torch.stack([miss / size, worst]).tolist()
    return relative, single


def off_by_one(found: torch.Tensor, other: torch.Tensor) -> float:
    """The share of elements of two tensors of whole numbers that differ; 0 where one differs by more than one."""
    if found.shape != other.shape or found.dtype != other.dtype or not found.numel():
        return 0.0
    wrong = most = 0
    for mine, theirs in _blocks([found, other]):
        apart = (mine.long() - theirs.long()).abs_()
        wrong, most = wrong + int(apart.sum()), max(most, int(apart.amax()))
    return wrong / found.numel() if most == 1 else 0.0


def own_error(
    found: torch.Tensor, exact: torch.Tensor, nudged: torch.Tensor | None = None, cores: Cores | None = None, *, gaps: bool = True
) -> OwnError:
    """The reference's error: `found` in its own dtype, `exact` in float64, `nudged` in float64 on inputs moved by their rounding,
    `cores` with the operands of products rounded. Without `gaps` nothing counts as huge."""
    if found.dtype in WHOLE:
        return OwnError(element=max(off_by_one(found, other) for other in (exact, nudged) if other is not None))
    if equal_or_wrong(found.dtype) or found.shape != exact.shape or not found.numel():
        return OwnError()
    found, exact, nudged = valued(found), valued(exact), None if nudged is None else valued(nudged)
    if found.is_complex():
        found, exact = torch.view_as_real(found), torch.view_as_real(exact)
        nudged = None if nudged is None else torch.view_as_real(nudged)
        cores = None if cores is None else Cores(*(torch.view_as_real(t) for t in (cores.nearest, cores.cut)))
    if nudged is not None and nudged.shape != exact.shape:
        nudged = None
    if cores is not None and (found.dtype is not torch.float32 or cores.nearest.shape != exact.shape):
        cores = None
    huge = huge_from(found) if gaps else math.inf
    others = [nudged] if nudged is not None else []
    others += [cores.nearest, cores.cut] if cores is not None else []
    blocks = _blocks([found, exact, *others])
    count, size, total, *sides = torch.stack([_sums(block, huge) for block in blocks]).sum(0).tolist()
    along = sides.pop()
    if not count:
        return OwnError(huge=huge)
    root = math.sqrt(size / count)
    rows = torch.stack([_extremes(block, huge, root, total / count) for block in blocks])
    variance, *worst = [float(rows[:, 0].sum()) / max(1, count - 1), *rows[:, 1:].amax(0).tolist()]
    misses = [
        (math.sqrt(miss) / _above(math.sqrt(size)), element) if finite == count else (math.inf, math.inf)
        for miss, finite, element in zip(sides[::2], sides[1::2], worst, strict=True)
    ]  # fmt: skip
    norm, element = misses[0]
    if nudged is not None and misses[1][0] < UNSTEADY:
        norm, element = max(norm, misses[1][0]), max(element, misses[1][1])
    spread = math.sqrt(variance) / max(root, 1e-300) if count >= FEW else 1.0
    own = OwnError(norm, element, min(1.0, spread), huge)
    return own if cores is None else _with_cores(own, misses[-2], misses[-1], -along / _above(size))


def _with_cores(own: OwnError, nearest: tuple[float, float], cut: tuple[float, float], shrink: float) -> OwnError:
    """The same with what tf32 makes of an output, as bounds: from its norm's and its worst element's error where operands are
    rounded and where they are cut off. shrink: the share by which the latter makes all values too small together."""
    norm = max(NEAREST_FACTOR * nearest[0], CUT_FACTOR * cut[0])
    element = EXTREME_FACTOR * max(NEAREST_FACTOR * nearest[1], CUT_FACTOR * cut[1])
    if not (math.isfinite(shrink) and math.isfinite(cut[0]) and shrink > 0):
        return replace(own, cores=norm, cores_element=element)
    rest = math.sqrt(max(0.0, cut[0] ** 2 - shrink**2))  # (c - t) without its part along t
    rest = max(NEAREST_FACTOR * nearest[0], CUT_FACTOR * rest)
    return replace(own, cores=norm, cores_element=element, shrink=CUT_FACTOR * shrink, cores_rest=rest)


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
    """Sums over one block: the number of elements that count, and the sums of their squares and of themselves; then of `found`
    and of each further tensor the squared errors and the number of finite elements; then the last one's errors times the exact
    values."""
    mine, target, *rest = _counted(block, huge)
    count = torch.tensor(float(target.numel()), dtype=torch.float64, device=target.device)
    sides = [x for t in (mine, *rest) for x in ((t - target).square().sum(), torch.isfinite(t).sum().double())]
    along = (((rest or [mine])[-1] - target) * target).sum()
    return torch.stack([count, target.square().sum(), target.sum(), *sides, along])


def _extremes(block: list[torch.Tensor], huge: float, root: float, mean: float) -> torch.Tensor:
    """Misses in one block: the sum of the squared distances from the mean; then of `found` and of each further tensor the worst
    element, relative to |element| + root mean square."""
    mine, target, *rest = _counted(block, huge)
    if not target.numel():
        return torch.zeros(2 + len(rest), dtype=torch.float64, device=target.device)
    base = (target.abs() + root).clamp_min_(1e-30)
    worst = [((t - target).abs_() / base).amax() for t in (mine, *rest)]
    return torch.stack([(target - mean).square().sum(), *worst])


def tolerance(dtype: torch.dtype, own: OwnError, precision: Precision) -> Tolerance:
    """What is allowed of an output of this dtype where the reference's own error is `own`. Of whole numbers `element` is the
    share that may be off by one."""
    if dtype in WHOLE:
        return Tolerance(0.0, min(MOST_ROUNDED, REFERENCE_FACTOR * own.element))
    if equal_or_wrong(dtype):
        return Tolerance(0.0, 0.0)
    loose = precision is Precision.TF32 and dtype is torch.float32
    floor = TF32_FLOOR if loose else FLOOR.get(dtype, FLOOR[torch.float32])
    if own.spread > REFERENCE_FACTOR * max(own.norm, torch.finfo(dtype).eps / 4):
        floor = min(floor, SPREAD * own.spread)
    least = TF32_ELEMENT_FLOOR if loose else ELEMENT_FLOOR.get(dtype, ELEMENT_FLOOR[torch.float32])
    norm, element = max(floor, REFERENCE_FACTOR * own.norm), max(least, REFERENCE_FACTOR * own.element)
    shrink = 0.0
    if precision is Precision.PYTORCH and own.shrunk:
        norm, element, shrink = max(norm, own.cores_rest), max(element, own.cores_element), own.shrink
    elif precision is Precision.PYTORCH and 0.0 < own.cores <= ROUNDED:
        norm, element = max(norm, min(own.cores, own.most_of_cores)), max(element, own.cores_element)
    return Tolerance(norm, min(ELEMENT_CAP, element), own.huge, shrink)


def widest(*limits: Tolerance) -> Tolerance:
    """What any of these allows; what counts as huge is the first one's."""
    norm, element, shrink = (max(values) for values in zip(*((a.norm, a.element, a.shrink) for a in limits), strict=True))
    return Tolerance(norm, element, limits[0].huge, shrink)


def of_state(
    dtype: torch.dtype, own: OwnError, outputs: Sequence[torch.Tensor], allowed: Sequence[Tolerance], precision: Precision
) -> Tolerance:
    """What is allowed of state that forward changes: as much as of an output of its dtype, since both are made of the same
    products. `allowed`: of each of the `outputs`."""
    return widest(tolerance(dtype, own, precision), *(a for o, a in zip(outputs, allowed, strict=True) if o.dtype is dtype))


def beside(dtype: torch.dtype, own: OwnError, precision: Precision) -> Tolerance:
    """What is allowed from the float64 result where the reference is its own measure: a candidate that is no farther from it than
    the reference, such as one that rounds less, is right, too."""
    floor = tolerance(dtype, OwnError(spread=own.spread, huge=own.huge), precision)
    if own.norm > ROUNDED:
        return floor
    return replace(floor, norm=max(floor.norm, own.norm), element=min(ELEMENT_CAP, max(floor.element, own.element)))
