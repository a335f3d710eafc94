"""How KernelBench compares outputs: `torch.allclose` with one number as absolute and relative tolerance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Closeness:
    """How close one call's outputs are to the reference's."""

    same_structure: bool
    """As many tensors, each of the same shape and dtype."""
    close_2: bool
    """Within 1e-2 everywhere."""
    close_4: bool
    """Within 1e-4 everywhere."""
    error: float
    """Norm of the difference over the reference's norm; the plain norm where that is 0."""


def closeness(expected: Sequence[torch.Tensor], found: Sequence[torch.Tensor]) -> Closeness:
    """Compare outputs on one device. Dtypes that differ are converted for the comparison, and told apart in the structure."""
    pairs = list(zip(expected, found, strict=False))
    same = len(expected) == len(found) and all(a.shape == b.shape and a.dtype == b.dtype for a, b in pairs)
    usable = [(a, b.to(a.dtype)) for a, b in pairs if a.shape == b.shape]
    whole = len(usable) == len(expected) == len(found) > 0
    miss = sum(float((a.double() - b.double()).abs().square().sum()) for a, b in usable)
    size = sum(float(a.double().abs().square().sum()) for a, _ in usable)
    return Closeness(
        same,
        whole and all(torch.allclose(a, b, atol=1e-2, rtol=1e-2) for a, b in usable),
        whole and all(torch.allclose(a, b, atol=1e-4, rtol=1e-4) for a, b in usable),
        (miss / size) ** 0.5 if size else miss**0.5,
    )
