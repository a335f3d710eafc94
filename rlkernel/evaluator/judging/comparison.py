"""Compares outputs. Pure functions over tensors; runs only in trusted processes.

Error of a round: ||candidate - exact|| / ||exact||, where `exact` is the reference in float64 where it runs there. The bound is a
multiple of the reference's own error in the problem's dtype, but at least a floor per dtype. A second bound on single elements
catches what a norm over many elements hides. Source: ours; the failures it answers are catalogued in docs/evaluator.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

FLOOR = {torch.float64: 1e-9, torch.float32: 5e-5, torch.float16: 3e-3, torch.bfloat16: 2e-2}
"""Norm-relative error that is always allowed,
by the reference output's dtype. float32's lies under what tf32 or half precision give."""
TF32_FLOOR = 2e-3
"""float32's floor when tf32 is allowed on both sides."""
REFERENCE_FACTOR = 8.0
"""Allowed error in units of the reference's own."""
ELEMENT_FACTOR = 200.0
"""Allowed error of one element, in units of the norm's bound, relative to |element| + root mean square."""


@dataclass(frozen=True, slots=True)
class Match:
    """Whether one round's outputs match, why not, and by how much they miss."""

    matches: bool
    detail: str = ""
    error: float = 0.0
    numeric: bool = False
    """The miss is one of size alone, so that a closer look at the reference's own error may forgive it."""


def layout_class(tensor: torch.Tensor) -> str:
    if tensor.is_contiguous():
        return "contiguous"
    if tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last):
        return "channels_last"
    return "strided"


def norm_error(value: torch.Tensor, exact: torch.Tensor) -> float:
    """||value - exact|| / ||exact|| over finite elements, in float64."""
    if value.numel():
        sizes = Sizes.of(quick_sums(value.double(), exact.double()).tolist(), exact)
        if sizes.finite:
            return sizes.error
    difference = (value.double() - exact.double())[torch.isfinite(exact)]
    size = float(torch.linalg.vector_norm(exact.double()[torch.isfinite(exact)]))
    return float(torch.linalg.vector_norm(difference)) / max(size, 1e-30) if difference.numel() else 0.0


def bound(reference: torch.Tensor, exact: torch.Tensor, *, tf32: bool) -> float:
    """The norm-relative error allowed for this output; 0 for integers, which must be equal."""
    exact_type = reference.is_floating_point() or reference.is_complex()
    return bound_of(reference.dtype, norm_error(reference, exact) if exact_type else 0.0, tf32=tf32)


def bound_of(dtype: torch.dtype, error: float, *, tf32: bool) -> float:
    """The norm-relative error allowed where the reference's own is `error`."""
    if not (dtype.is_floating_point or dtype.is_complex):
        return 0.0
    floor = TF32_FLOOR if tf32 and dtype is torch.float32 else FLOOR.get(dtype, FLOOR[torch.float32])
    return max(floor, REFERENCE_FACTOR * error)


def mismatch(found: torch.Tensor, reference: torch.Tensor, *, overlapping: bool, where: str) -> str | None:
    """What is wrong with an output whatever its values; None if nothing is."""
    if tuple(found.shape) != tuple(reference.shape):
        return f"{where} has shape {tuple(found.shape)}, expected {tuple(reference.shape)}"
    if found.dtype != reference.dtype:
        return f"{where} has dtype {_name(found.dtype)}, expected {_name(reference.dtype)}"
    if overlapping:
        return f"{where} is an expanded view: its elements share memory"
    if layout_class(found) not in ("contiguous", layout_class(reference)):
        return f"{where} is {layout_class(found)} in memory, expected {layout_class(reference)}"
    return None


def quick_sums(found: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    """Three numbers for `Sizes.of`, on the tensors' device, without waiting for it. Both have the same shape."""
    if exact.is_complex():
        found, exact = torch.view_as_real(found), torch.view_as_real(exact)
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
        if not (exact.is_floating_point() or exact.is_complex()):
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

    def fine(self, allowed: float) -> bool:
        """Both bounds hold for certain; False if one does not, or may not, or if something is not finite."""
        return (
            self.finite
            and self.rms > 0
            and self.miss <= allowed * self.rms
            and self.largest <= ELEMENT_FACTOR * allowed * self.rms
        )

    def wrong(self, allowed: float) -> bool:
        """The norm-relative error is too large, or not finite."""
        return not self.miss <= allowed * max(self.rms, 1e-30)


def decide(
    found: torch.Tensor, reference: torch.Tensor, exact: torch.Tensor, sums: Sequence[float], *, allowed: float, where: str
) -> Match:
    """One output from its `quick_sums`; where these do not tell, from its elements."""
    sizes = Sizes.of(sums, exact)
    if not (reference.is_floating_point() or reference.is_complex()):
        wrong = int(sizes.miss)
        return Match(wrong == 0, f"{where}: {wrong} of {found.numel()} elements differ" if wrong else "", float(wrong > 0))
    if sizes.fine(allowed):
        return Match(True, "", sizes.error)
    if reference.is_complex():
        found, reference, exact = (torch.view_as_real(t) for t in (found, reference, exact))
    error, worst = _errors(found, exact)
    if not (math.isfinite(error) and math.isfinite(worst)):  # something is not finite: look at where
        same = torch.isfinite(found) == torch.isfinite(reference)
        infinities = torch.isinf(reference)
        if not bool(same.all()) or not torch.equal(found[infinities], reference[infinities]):
            return Match(False, f"{where} has NaN or infinity where the reference is finite, or the reverse", math.inf)
        finite = torch.isfinite(exact) & torch.isfinite(found)
        error, worst = _errors(found[finite], exact[finite]) if bool(finite.any()) else (0.0, 0.0)
    if not error <= allowed:
        return Match(False, f"{where} is wrong: relative error {error:.2e}, allowed {allowed:.0e}", error, numeric=True)
    if not worst <= ELEMENT_FACTOR * allowed:
        return Match(False, f"{where} is wrong in single elements: relative error {worst:.2e}", error, numeric=True)
    return Match(True, "", error)


def compare_tensor(
    found: torch.Tensor, reference: torch.Tensor, exact: torch.Tensor, *, allowed: float, overlapping: bool, where: str
) -> Match:
    """One output tensor against the reference's and the exact one. `allowed`: norm-relative error, see `bound`."""
    detail = mismatch(found, reference, overlapping=overlapping, where=where)
    if detail is not None:
        return Match(False, detail)
    if not (reference.is_floating_point() or reference.is_complex()):
        exact = reference
    return decide(found, reference, exact, quick_sums(found, exact).tolist(), allowed=allowed, where=where)


def _wide(found: torch.Tensor, exact: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(target, difference), in float32 at least."""
    wide = torch.promote_types(exact.dtype, torch.float32)
    target = exact.to(wide)
    return target, found.to(wide) - target


def _errors(found: torch.Tensor, exact: torch.Tensor) -> tuple[float, float]:
    """Norm-relative error, and the largest |difference| / (|element| + root mean square)."""
    target, difference = _wide(found, exact)
    size = torch.linalg.vector_norm(target).clamp_min(1e-30)
    miss = torch.linalg.vector_norm(difference)
    worst = (difference.abs_() / (target.abs() + size / math.sqrt(target.numel())).clamp_min(1e-30)).amax()
    relative, single = torch.stack([miss / size, worst]).tolist()
    return relative, single


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
    return None if found == expected else f"{where} is {str(found)[:40]}, expected {str(expected)[:40]}"


@dataclass(frozen=True, slots=True)
class Expected:
    """What the trusted side knows of one round."""

    structure: Any
    reference: tuple[torch.Tensor, ...]
    exact: tuple[torch.Tensor, ...]
    inputs_after: tuple[torch.Tensor, ...]
    other: bool
    stressed: bool
    allowed: tuple[float, ...]
    """Norm-relative error of each output, see `bound`."""


def compare_round(
    structure: Any,
    tensors: Sequence[torch.Tensor],
    overlapping: Sequence[bool],
    inputs: Sequence[torch.Tensor],
    expected: Expected,
) -> Match:
    """All outputs of one round, and the inputs after the call."""
    mismatch = compare_structure(structure, expected.structure)
    if mismatch or len(tensors) != len(expected.reference):
        return Match(False, mismatch or "another number of output tensors")
    mode = " in the other of train and eval mode" if expected.other else ""
    error = 0.0
    for index, found in enumerate(tensors):
        where = "output" if len(tensors) == 1 else f"output {index}"
        match = compare_tensor(
            found, expected.reference[index], expected.exact[index],
            allowed=expected.allowed[index], overlapping=overlapping[index], where=where,
        )  # fmt: skip
        error = max(error, match.error)
        if not match.matches:
            return Match(False, match.detail + mode, error)
    for index, (found, wanted) in enumerate(zip(inputs, expected.inputs_after, strict=True)):
        if found.shape != wanted.shape or not torch.equal(bits(found), bits(wanted)):
            return Match(False, f"forward changes its input {index}, the reference does not", error)
    return Match(True, "", error)
