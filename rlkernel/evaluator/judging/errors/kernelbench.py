"""The fact beside our verdict: would KernelBench's own comparison have taken these outputs for the reference's?

Its rule is `torch.allclose(reference, candidate, atol=t, rtol=t)` on the problem's own inputs. t was 1e-2 in its first versions,
and is 1e-4 for float32 since (`get_tolerance_for_precision` in its eval.py). It compares one tensor; here every output counts.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from rlkernel.evaluator.program.codes import valued
from rlkernel.types import Closeness

TOLERANCES = (1e-4, 1e-2)
BLOCK = 1 << 26
"""Elements that are looked at together, so that an output of gigabytes needs no copy of itself."""


def closeness(found: Sequence[torch.Tensor], reference: Sequence[torch.Tensor]) -> Closeness:
    """How close a candidate's outputs are by KernelBench's rule. NaN is close to nothing; an infinity to itself."""
    if len(found) != len(reference):
        return Closeness.NO
    if any(f.shape != r.shape or f.dtype != r.dtype for f, r in zip(found, reference, strict=True)):
        return Closeness.NO
    for tolerance, name in zip(TOLERANCES, (Closeness.TIGHT, Closeness.LOOSE), strict=True):
        if all(_close(f, r, tolerance) for f, r in zip(found, reference, strict=True)):
            return name
    return Closeness.NO


def surely_tight(largest: float, outputs: Sequence[torch.Tensor]) -> bool:
    """Whether outputs are as close as `Closeness.TIGHT` says because no element differs by more than `largest`, which is finite,
    in an arithmetic as exact as theirs. So nothing need be read once more."""
    exactly = all(
        not t.is_complex() and (t.dtype in (torch.float32, torch.float64) or not t.is_floating_point()) for t in outputs
    )
    return exactly and largest <= TOLERANCES[0]


def _close(found: torch.Tensor, reference: torch.Tensor, tolerance: float) -> bool:
    blocks = zip(torch.split(found.reshape(-1), BLOCK), torch.split(reference.reshape(-1), BLOCK), strict=True)
    return all(torch.allclose(valued(r), valued(f), atol=tolerance, rtol=tolerance) for f, r in blocks)


def worse(one: Closeness, other: Closeness) -> Closeness:
    """The less close of two rounds."""
    order = (Closeness.NO, Closeness.LOOSE, Closeness.TIGHT)
    return min(one, other, key=order.index)
