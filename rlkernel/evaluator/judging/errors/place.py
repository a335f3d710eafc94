"""Where outputs differ, for a person who judges one file: no verdict rests on it, and no policy is told.

It holds values of the reference's results, which a policy could learn by heart where draws repeat.
"""

from __future__ import annotations

import torch

from rlkernel.evaluator.messages.judgement import Tolerance
from rlkernel.evaluator.program.codes import equal_or_wrong, valued

MOST = 2**24
"""The elements of the largest tensor that is looked at. A look takes about 50 bytes of each."""


def place_of(found: torch.Tensor, exact: torch.Tensor, allowed: Tolerance) -> str:
    """The place of the worst element, with both values, and the share of elements that are off by more than is allowed for all
    of them together. Empty where shapes differ, or where no element is off by so much; of large tensors and of those on a card,
    whose memory a judgement needs.

    >>> tight = Tolerance(norm=1e-4, element=1.0)
    >>> place_of(torch.tensor([[1.0, 2.0], [3.0, 4.5]]), torch.tensor([[1.0, 2.0], [3.0, 4.0]]), tight)
    'worst at [1, 1]: 4.5, expected 4; 1 of 4 elements differ'
    """
    if found.shape != exact.shape or not 0 < found.numel() <= MOST or found.device.type != "cpu":
        return ""
    given, target = valued(found), valued(exact)
    if equal_or_wrong(exact.dtype):
        off = given != target
        apart = (given.double() - target.double()).abs()
    else:
        wide = torch.complex128 if target.is_complex() or given.is_complex() else torch.float64
        given, target = given.to(wide), target.to(wide)
        size = target[target.isfinite()].abs().square()
        rms = float(size.mean().sqrt()) if size.numel() else 0.0
        apart = (given - target).abs() / (target.abs() + rms).clamp_min(1e-30)
        same = (given == target) | (given.isnan() & target.isnan())
        apart = torch.where(same, 0.0, apart.nan_to_num(nan=torch.inf, posinf=torch.inf))
        off = apart > allowed.norm
    wrong = int(off.sum())
    if not wrong:
        return ""
    at = tuple(int(index) for index in torch.unravel_index(torch.where(off, apart, -1.0).argmax(), apart.shape))
    values = f"{_number(found, at)}, expected {_number(exact, at)}"
    return f"worst at {list(at)}: {values}; {wrong:,} of {off.numel():,} elements differ"


def _number(tensor: torch.Tensor, at: tuple[int, ...]) -> str:
    value = valued(tensor)[at].item()
    return str(value) if isinstance(value, bool) else f"{value:.4g}"
