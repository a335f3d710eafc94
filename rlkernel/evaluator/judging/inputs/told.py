"""What a problem takes at least of a kernel whose loops end where the inputs' whole numbers say.

A reference that masks what lies beyond a length reads it, and a kernel that stops there does not. How much matters is found out
on the reference, where it is small: what has a gradient, in the drawing in which that is least. So the floors of data and
arithmetic are lower, for such kernels alone.
"""

from __future__ import annotations

import torch

from rlkernel.evaluator.judging.references.reference_calls import tensors_of
from rlkernel.reference import Reference

DRAWINGS = 8


def told_shares(reference: Reference) -> tuple[float, ...] | None:
    """The share of the elements of each tensor among forward's arguments that matters, the least of some drawings; None where
    gradients say nothing, or everything matters."""
    try:
        found = [_shares(reference, seed) for seed in range(DRAWINGS)]
    except Exception:  # whatever a reference raises where gradients are asked for, they say nothing
        return None
    least = tuple(min(each) for each in zip(*found, strict=True))
    return least if min(least, default=1.0) < 1.0 else None


def _shares(reference: Reference, seed: int) -> list[float]:
    """The share that has a gradient, of one drawing; 1 of what can have none."""
    torch.manual_seed(seed)
    inputs, model = reference.inputs(seed), reference.model(seed)
    given = tensors_of(inputs)
    floats = [one.requires_grad_() for one in given if one.is_floating_point() and one.element_size() > 1]
    with torch.enable_grad():
        outputs = [one for one in tensors_of(model(*inputs)) if one.requires_grad]
        total = sum((one * torch.randn_like(one)).double().sum() for one in outputs)
        assert isinstance(total, torch.Tensor), "no output depends on the inputs"
        gradients = torch.autograd.grad(total, floats, allow_unused=True)
    parts = iter(1.0 if one is None else float((one != 0).double().mean()) for one in gradients)
    return [next(parts) if one.requires_grad else 1.0 for one in given]
