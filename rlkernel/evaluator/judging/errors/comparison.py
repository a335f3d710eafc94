"""Compares outputs. Pure functions over tensors; runs only in trusted processes.

Error of a round: ||candidate - exact|| / ||exact||, where `exact` is the reference in float64 where it runs there. What is
allowed is measured on the reference (`own_error.py`, `tolerance.py`). What a norm over many elements hides has bounds of its own:
single elements; rows, columns and channels; huge values. Source: ours; the failures it answers are catalogued in
docs/evaluator/compared.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from rlkernel.evaluator.judging.errors.error_passes import BLOCK
from rlkernel.evaluator.judging.errors.own_error import errors, off_by_one
from rlkernel.evaluator.judging.errors.tolerance import MOST_ROUNDED
from rlkernel.evaluator.messages.judgement import Tolerance
from rlkernel.evaluator.program.codes import equal_or_wrong, valued

SLICE = 0.25
"""Allowed error of one row, column or channel, in units of its own root mean square."""
SLICE_ELEMENTS = 16
"""Elements that a slice needs to be looked at on its own."""
AT_ONCE = 1 << 22
"""Elements of a tensor up to which its slices are looked at by few operators, which read it more often."""


@dataclass(frozen=True, slots=True)
class Match:
    """Whether one round's outputs match, why not, and by how much they miss."""

    matches: bool
    detail: str = ""
    error: float = 0.0
    numeric: bool = False
    """The miss is one of size alone, or of a few whole numbers, so that a closer look at the reference's own error, or at what
    roundings decide, may forgive it."""
    place: str = ""
    """Where values differ, for people alone (`place.place_of`)."""


LENT = "{where} is the memory of an input, the reference's is its own"
"""What is said of a candidate that hands an input back where the reference makes a result."""


def mismatch(found: torch.Tensor, reference: torch.Tensor, *, overlapping: bool, where: str) -> str | None:
    """What is wrong with an output whatever its values; None if nothing is. In which order its elements lie in memory is free."""
    if tuple(found.shape) != tuple(reference.shape):
        return f"{where} has shape {tuple(found.shape)}, expected {tuple(reference.shape)}"
    if found.dtype != reference.dtype:
        return f"{where} has dtype {_name(found.dtype)}, expected {_name(reference.dtype)}"
    if overlapping:
        return f"{where} is an expanded view: its elements share memory"
    return None


def quick_sums(found: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    """Three numbers for `Sizes.of`, on the tensors' device, without waiting for it. Both have the same shape."""
    if exact.is_complex():
        found, exact = torch.view_as_real(found), torch.view_as_real(exact)
    found, exact = valued(found), valued(exact)
    if not exact.is_floating_point():
        wrong = (found != exact).sum().double()
        return torch.stack([wrong, torch.ones_like(wrong), wrong])
    if not exact.numel():
        return torch.zeros(3, dtype=torch.float64, device=exact.device)
    target, difference = _wide(found, exact)
    norm = torch.linalg.vector_norm
    return torch.stack([norm(difference).double() ** 2, norm(target).double() ** 2, norm(difference, ord=math.inf).double()])


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large a difference is: its root mean square, the exact value's, and its largest element. Integers: how many differ."""

    miss: float
    rms: float
    largest: float

    @staticmethod
    def of(sums: Sequence[float], exact: torch.Tensor) -> Sizes:
        """`sums` as `quick_sums` gives them."""
        count = max(1, exact.numel() * (2 if exact.is_complex() else 1))
        if equal_or_wrong(exact.dtype):
            return Sizes(*sums)
        miss, rms = (math.sqrt(x / count) if x >= 0 else math.nan for x in sums[:2])
        return Sizes(miss, rms, sums[2])

    @property
    def error(self) -> float:
        """Norm-relative."""
        return self.miss / max(self.rms, 1e-30)

    @property
    def finite(self) -> bool:
        return math.isfinite(self.miss) and math.isfinite(self.rms) and math.isfinite(self.largest)

    def fine(self, allowed: Tolerance) -> bool:
        """The bounds on the norm and on elements hold for certain; False if one does not, or may not, or if something is not
        finite or huge."""
        return (
            self.finite
            and self.rms > 0
            and math.isinf(allowed.huge)
            and self.miss <= allowed.norm * self.rms
            and self.largest <= allowed.element * self.rms
        )


def decide(
    found: torch.Tensor, reference: torch.Tensor, exact: torch.Tensor, sums: Sequence[float], *, allowed: Tolerance, where: str,
    slices: bool = True,
) -> Match:  # fmt: skip
    """One output from its `quick_sums`; where these do not tell, from its elements. `slices`: whether to look at slices."""
    sizes = Sizes.of(sums, exact)
    if equal_or_wrong(reference.dtype):
        wrong = int(sizes.miss)
        if 0 < wrong <= allowed.element * found.numel() and off_by_one(found, reference) > 0:
            return Match(True, "", math.sqrt(wrong) / float(torch.linalg.vector_norm(reference.double()).clamp_min(1.0)))
        detail = f"{where}: {wrong} of {found.numel()} elements differ" if wrong else ""
        return Match(wrong == 0, detail, float(wrong > 0), numeric=0 < wrong <= MOST_ROUNDED * found.numel())
    found, reference, exact = valued(found), valued(reference), valued(exact)
    if reference.is_complex():
        found, reference, exact = (torch.view_as_real(t) for t in (found, reference, exact))
    if sizes.fine(allowed):
        return _slices(found, exact, allowed, sizes.error, where) if slices else Match(True, "", sizes.error)
    return _elements(found, reference, exact, allowed, where)


def _elements(found: torch.Tensor, reference: torch.Tensor, exact: torch.Tensor, allowed: Tolerance, where: str) -> Match:
    """What is not finite must be the same, what is huge must be met one by one, the rest within both bounds."""
    infinite, not_a_number = torch.isinf(reference), torch.isnan(reference)
    same_places = torch.equal(torch.isnan(found), not_a_number) and torch.equal(torch.isinf(found), infinite)
    if not same_places or not torch.equal(found[infinite], reference[infinite]):
        return Match(False, f"{where} has NaN or infinity where the reference is finite, or the reverse", math.inf)
    finite = torch.isfinite(exact) & torch.isfinite(found)
    huge = finite & (reference.abs() > allowed.huge)
    if bool(huge.any()):
        wide = torch.promote_types(exact.dtype, torch.float32)
        target, given = exact[huge].to(wide), found[huge].to(wide)
        limit = max(allowed.norm, 2 * torch.finfo(reference.dtype).eps)
        wrong = int(((given - target).abs() > limit * target.abs()).sum())
        if wrong:
            return Match(
                False, f"{where} is wrong: {wrong} huge values such as {float(target[0]):.3g} are not met", 1.0, numeric=True
            )
    here = finite & ~huge
    if not bool(here.any()):
        return Match(True)
    if allowed.shrink:
        found = _grown(found, exact, here, allowed)
    error, worst = errors(found[here], exact[here])
    if not error <= allowed.norm:
        return Match(False, f"{where} is wrong: relative error {error:.2e}, allowed {allowed.norm:.0e}", error, numeric=True)
    if not worst <= allowed.element:
        return Match(False, f"{where} is wrong in single elements: relative error {worst:.2e}", error, numeric=True)
    blank = torch.zeros((), dtype=exact.dtype, device=exact.device)
    return _slices(torch.where(here, found, blank.to(found.dtype)), torch.where(here, exact, blank), allowed, error, where)


def _grown(found: torch.Tensor, exact: torch.Tensor, here: torch.Tensor, allowed: Tolerance) -> torch.Tensor:
    """`found` without the factor that its ordinary values, which are `here`, share, where they are too small together by no more
    than is allowed."""
    given, target = found[here].double(), exact[here].double()
    factor = float((given * target).sum() / target.square().sum().clamp_min(1e-300))
    return (found.to(torch.promote_types(found.dtype, torch.float32)) / factor) if 1 - allowed.shrink <= factor < 1 else found


def _slices(found: torch.Tensor, exact: torch.Tensor, allowed: Tolerance, error: float, where: str) -> Match:
    """Every row, column and channel of enough elements is right by its own size, however small it is beside the others. Where
    single elements tell nothing, nor does a slice, which one of them may make."""
    told = [] if math.isinf(allowed.element) or not _sliced(exact) else wrong_slices(found, exact, allowed).tolist()
    if any(told):
        dim = _sliced(exact)[told.index(True)]
        return Match(False, f"{where} is wrong in single slices along dimension {dim}", error, numeric=True)
    return Match(True, "", error)


def _sliced(exact: torch.Tensor) -> list[int]:
    """The dimensions whose slices are looked at."""
    return [d for d, size in enumerate(exact.shape) if size > 1 and exact.numel() // size >= SLICE_ELEMENTS]


def wrong_slices(found: torch.Tensor, exact: torch.Tensor, allowed: Tolerance) -> torch.Tensor:
    """A flag for each dimension whose slices are looked at, on the tensors' device, without waiting for it: one is wrong.

    Both are real, of the same shape. All elements are read twice, however many dimensions there are: the mean over the last one
    serves all before it.
    """
    dims = _sliced(exact)
    if not dims:
        return torch.zeros(0, dtype=torch.bool, device=exact.device)
    found, exact = valued(found), valued(exact)
    wide = torch.promote_types(exact.dtype, torch.float32)
    if exact.numel() <= AT_ONCE:
        return _few_wrong(found, exact, wide, allowed, dims)
    pair = (found.to(wide) - exact, exact)
    rows = [t.flatten(0, -2) for t in pair]
    left = torch.stack([_mean_squares(t, 1) for t in rows])
    left = left.view(2, *exact.shape[:-1])  # the mean over what was summed so far
    most = 2 * allowed.norm * left[1].mean().sqrt()
    flags = []
    for dim in reversed(dims):
        if dim == exact.dim() - 1:
            missed, size = torch.stack([_mean_squares(t, 0) for t in rows]).sqrt()
        else:
            while left.dim() - 2 > dim:
                left = left.mean(-1)
            missed, size = (left.flatten(1, -2).mean(1) if left.dim() > 2 else left).sqrt()
        flags.append((missed > SLICE * size + most).any())
    return torch.stack(flags[::-1])


def _few_wrong(
    found: torch.Tensor, exact: torch.Tensor, wide: torch.dtype, allowed: Tolerance, dims: Sequence[int]
) -> torch.Tensor:
    """The same of a tensor so small that operators cost more than memory: half as many, which read it once per dimension."""
    exact = exact.to(wide)
    squares = torch.stack([found - exact, exact]).double().square_()
    means = [squares.mean([axis + 1 for axis in range(exact.dim()) if axis != dim]) for dim in dims]
    missed, size = torch.cat(means, dim=1).sqrt_()  # of the slices of all dimensions, one after the other
    least = 2 * allowed.norm * squares[1].mean().sqrt_()
    wrong = missed > torch.add(least, size, alpha=SLICE)
    return torch.stack([one.any() for one in wrong.split([exact.shape[dim] for dim in dims])])


def _mean_squares(rows: torch.Tensor, dim: int) -> torch.Tensor:
    """The mean of the squares along one of two dimensions, in float64: float32 has no squares of 1e20. A part of the rows goes
    after the other, because torch makes a copy in float64 of what it reduces so."""
    parts = torch.split(rows, max(1, BLOCK // rows.shape[1]))
    squares = [torch.linalg.vector_norm(part, dim=dim, dtype=torch.float64).square_() for part in parts]
    return (torch.cat(squares) if dim else torch.stack(squares).sum(0)).div_(rows.shape[dim])


def compare_tensor(
    found: torch.Tensor, reference: torch.Tensor, exact: torch.Tensor, *, allowed: Tolerance, overlapping: bool, where: str
) -> Match:
    """One output tensor against the reference's and the exact one."""
    detail = mismatch(found, reference, overlapping=overlapping, where=where)
    if detail is not None:
        return Match(False, detail)
    if equal_or_wrong(reference.dtype):
        exact = reference
    return decide(found, reference, exact, quick_sums(found, exact).tolist(), allowed=allowed, where=where)


def _wide(found: torch.Tensor, exact: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(target, difference), in float32 at least, in memory of their own."""
    found, exact = valued(found), valued(exact)
    wide = torch.promote_types(exact.dtype, torch.float32)
    target = exact.to(wide, copy=True)
    return target, found.to(wide) - target


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """The contents as integers, so that NaN equals itself."""
    raw = tensor.contiguous().reshape(-1).view(torch.uint8)
    return raw.view(torch.int64) if raw.numel() % 8 == 0 else raw


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def compare_structure(found: Any, expected: Any, where: str = "output") -> str | None:
    """None if both have the same nesting, keys and plain values; else what differs."""
    if isinstance(expected, dict) and "tensor" in expected:
        return None if isinstance(found, dict) and "tensor" in found else f"{where} is not a tensor"
    if isinstance(expected, dict) and "dict" in expected:
        if not (isinstance(found, dict) and "dict" in found):
            return f"{where} is not a dict"
        if [k for k, _ in found["dict"]] != [k for k, _ in expected["dict"]]:
            return f"{where} has other keys"
        pairs = zip(found["dict"], expected["dict"], strict=True)
        return next((m for (k, a), (_, b) in pairs if (m := compare_structure(a, b, f"{where}[{k!r}]"))), None)
    if isinstance(expected, list):
        if not isinstance(found, list):
            return f"{where} is one value, expected {len(expected)}"
        if len(found) != len(expected):
            return f"{where} has {len(found)} values, expected {len(expected)}"
        pairs2 = enumerate(zip(found, expected, strict=True))
        return next((m for i, (a, b) in pairs2 if (m := compare_structure(a, b, f"{where}[{i}]"))), None)
    alike = found == expected or (found != found and expected != expected)  # NaN
    return None if alike else f"{where} is {str(found)[:40]}, expected {str(expected)[:40]}"
