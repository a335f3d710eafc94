"""By how much the reference itself errs, and what tf32 makes of it: the measure of what a candidate may miss by (`tolerance.py`).

The reference is computed twice, in its own dtype and in float64, and in float64 once more on inputs that are moved by their own
rounding. What differs is the reference's own error: of the whole output (relative to its norm) and of its worst element
(relative to |element| + root mean square). Where tf32 may be used, the float64 reference is computed with the operands of its
products rounded to tf32, and with these cut off (`tensor_cores.py`).

Where the float64 result is next to nothing beside what the reference gives, that is noise: what roundings leave of a
cancellation, such as the mean of what was normalised. Its size says how large another kernel's noise may be.

Two things are left out of all measures, because they would hide what is beside them: values that are not finite, and huge ones,
such as -1e9 behind a mask. Huge values begin above a gap of a factor of 1000 in the sorted magnitudes. Source: ours.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import torch

from rlkernel.evaluator.judging.errors.error_passes import ByTorch, Measure, Sums, blocks
from rlkernel.evaluator.program.codes import HALF, equal_or_wrong, valued

NEAREST_FACTOR = 3.0
"""Allowed error in units of that of operands that are rounded to tf32."""
CUT_FACTOR = 1.25
"""Allowed error in units of that of operands that are cut off to tf32: these err alike, so that little room is needed."""
EXTREME_FACTOR = 2.0
"""The same once more for the worst element, which another order of summation may make twice as bad; the norm keeps its bound."""
CORES_CAP = 0.02
"""What tf32 may add at most to a norm's bound."""
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
WHOLE = (torch.int8, torch.uint8, torch.int16, torch.int32)
"""Dtypes of quantised values. int64 is that of indices, and bool that of conditions."""
FEW = 8
"""Elements below which a standard deviation says nothing."""
UNSTEADY = 0.05
"""Norm-relative error from which on the reference is its own measure: it rounds too much, or jumps between values."""
CANCELLED = 1e-2
"""Norm of the float64 result, relative to the reference's, below which the reference gives noise."""


@dataclass(frozen=True, slots=True)
class Cores:
    """An output as tensor cores may give it, in float64 otherwise."""

    nearest: tuple[torch.Tensor, ...]
    """With the operands of products rounded to tf32, in one way or several."""
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
    noise: float = 0.0
    """How large a difference in noise may be, as a bound, relative to the norm of what the reference gives; 0 where that is no
    noise."""

    cast: bool = False
    """Whether the reference rounds to half precision what it is given in float32: then it is its own measure, beside which what
    float64 gives without that is right, too."""

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
        """Whether the float64 result is the same function of the inputs as the reference, which casts to nothing narrower."""
        return self.norm < UNSTEADY and not self.cast

    def with_cores(self, factor: float) -> OwnError:
        """The same with so many times the error of tf32."""
        return replace(
            self, cores=factor * self.cores, cores_element=factor * self.cores_element,
            shrink=factor * self.shrink, cores_rest=factor * self.cores_rest,
        )  # fmt: skip


def casts(output: torch.Tensor, given: Iterable[torch.Tensor]) -> bool:
    """Whether an output has half precision, and nothing that the reference is `given` has, inputs, parameters and buffers."""
    return output.dtype in HALF and not any(tensor.dtype in HALF for tensor in given)


def steady(error: OwnError) -> OwnError:
    """No error of its own for a reference that jumps between values and has no exact result; what is said of noise stays."""
    return error if error.steady else OwnError(spread=error.spread, huge=error.huge, noise=error.noise)


def other_choices(errors: Sequence[OwnError], cores: Sequence[Cores | None]) -> dict[int, tuple[torch.Tensor, ...]]:
    """By their places, the outputs of which tensor cores make something else, and what: another choice of those that a rounding
    decides, such as a token's other expert."""
    rows = enumerate(zip(errors, cores, strict=False))
    return {i: (*sides.nearest, sides.cut) for i, (error, sides) in rows if sides is not None and error.blurred}


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
    size = torch.linalg.vector_norm(target, dtype=torch.float64).clamp_min(1e-30)  # squares of 1e20 are none of float32
    miss = torch.linalg.vector_norm(difference, dtype=torch.float64)
    worst = (difference.abs_() / (target.abs() + size / math.sqrt(target.numel())).clamp_min(1e-30)).amax()
    relative, single = torch.stack([miss / size, worst.double()]).tolist()
    return relative, single


def off_by_one(found: torch.Tensor, other: torch.Tensor) -> float:
    """The share of elements of two tensors of whole numbers that differ; 0 where one differs by more than one."""
    if found.shape != other.shape or found.dtype != other.dtype or not found.numel():
        return 0.0
    wrong = most = 0
    for mine, theirs in blocks([found, other]):
        apart = (mine.long() - theirs.long()).abs_()
        wrong, most = wrong + int(apart.sum()), max(most, int(apart.amax()))
    return wrong / found.numel() if most == 1 else 0.0


def undecided(found: Sequence[torch.Tensor], exact: Sequence[torch.Tensor]) -> float:
    """The share of whole numbers of `found`, in the output that has most of them, that are others in float64, where these are no
    roundings to a neighbour: indices of what the reference itself cannot tell apart, such as the larger one of two equal
    numbers."""
    pairs = [(one, other) for one, other in zip(found, exact, strict=True) if equal_or_wrong(one.dtype)]
    shares = (_differing(one, other) for one, other in pairs if not (one.dtype in WHOLE and off_by_one(one, other)))
    return max(shares, default=0.0)


def _differing(one: torch.Tensor, other: torch.Tensor) -> float:
    """The share of elements that differ; 1 where shapes do."""
    if one.shape != other.shape:
        return 1.0
    return int((valued(one) != valued(other)).sum()) / max(1, one.numel())


def own_error(
    found: torch.Tensor, exact: torch.Tensor, nudged: torch.Tensor | None = None, cores: Cores | None = None, *,
    gaps: bool = True, passes: Measure = ByTorch,
) -> OwnError:  # fmt: skip
    """The reference's error: `found` in its own dtype, `exact` in float64, `nudged` in float64 on inputs moved by their rounding,
    `cores` with the operands of products rounded. Without `gaps` nothing counts as huge. passes: what reads the tensors."""
    if found.dtype in WHOLE:
        return OwnError(element=max(off_by_one(found, other) for other in (exact, nudged) if other is not None))
    if equal_or_wrong(found.dtype) or found.shape != exact.shape or not found.numel():
        return OwnError()
    found, exact, nudged = valued(found), valued(exact), None if nudged is None else valued(nudged)
    if found.is_complex():
        found, exact = torch.view_as_real(found), torch.view_as_real(exact)
        nudged = None if nudged is None else torch.view_as_real(nudged)
        cores = None if cores is None else Cores(tuple(map(torch.view_as_real, cores.nearest)), torch.view_as_real(cores.cut))
    if nudged is not None and nudged.shape != exact.shape:
        nudged = None
    if cores is not None and (found.dtype is not torch.float32 or cores.cut.shape != exact.shape):
        cores = None
    huge = huge_from(found) if gaps else math.inf
    others = [nudged] if nudged is not None else []
    others += [*cores.nearest, cores.cut] if cores is not None else []
    ways = len(cores.nearest) if cores is not None else 0
    read = passes([found, exact, *others], huge)
    sums = read.sums()
    if not sums.count:
        return OwnError(huge=huge)
    root = math.sqrt(sums.size / sums.count)
    squares, worst = read.extremes(root, sums.total / sums.count)
    misses = [
        (math.sqrt(miss) / _above(math.sqrt(sums.size)), element) if finite == sums.count else (math.inf, math.inf)
        for (miss, finite), element in zip(sums.sides, worst, strict=True)
    ]  # fmt: skip
    norm, element = misses[0]
    if nudged is not None and misses[1][0] < UNSTEADY:
        norm, element = max(norm, misses[1][0]), max(element, misses[1][1])
    spread = math.sqrt(squares / max(1, sums.count - 1)) / max(root, 1e-300) if sums.count >= FEW else 1.0
    noise = _noise(sums, ways) if sums.count >= FEW else 0.0
    own = OwnError(norm, element, min(1.0, spread), huge, noise=noise)
    if cores is None:
        return own
    nearest = max(miss[0] for miss in misses[-1 - ways : -1]), max(miss[1] for miss in misses[-1 - ways : -1])
    return _with_cores(own, nearest, misses[-1], -sums.along / _above(sums.size))


def _noise(sums: Sums, ways: int) -> float:
    """The bound `OwnError.noise`. ways: in how many operands were rounded to tf32, the sides before the last one, where they are
    cut off to it."""
    size, given = math.sqrt(sums.size), math.sqrt(sums.given)
    if not size < CANCELLED * given < math.inf:
        return 0.0
    missed = [math.sqrt(miss) for miss, _ in sums.sides]
    bound = REFERENCE_FACTOR * missed[0]
    if ways:
        bound += max(NEAREST_FACTOR * max(missed[-1 - ways : -1]), CUT_FACTOR * missed[-1])
    return bound / given if math.isfinite(bound) else 0.0


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
