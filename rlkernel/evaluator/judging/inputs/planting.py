"""Inputs among which the numbers are that forward is given besides, for references that have nothing to do otherwise.

What a problem's author draws may never show what a kernel does: a count of 501,010 in numbers up to 100,000 is always zero,
and whoever does nothing is right. Where an output holds one number, whatever is drawn, whole numbers among the arguments are put
into the tensors of whole numbers, at random places. If the reference then gives another answer, candidates are judged there, too,
and it is found out there whether a kernel's result reaches the output. The same holds where one output among several is so: a
count beside a result. Source: ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from rlkernel.evaluator.judging.inputs.fixed import WHOLE
from rlkernel.evaluator.judging.references.reference_calls import mapped, tensors_of
from rlkernel.evaluator.program.codes import SIGNED, valued

SHARE = 0.125
"""The share of elements that get a number of the arguments."""
PLANTED = "numbers of forward's arguments among its inputs"
"""Stands behind a miss in such a round."""


def only_values(outputs: Sequence[torch.Tensor]) -> tuple[float | None, ...]:
    """The one number that each output holds, of unsigned ones as the signed number of the same bits; None for one that holds
    several, or none. A GPU is waited for."""
    return tuple(_only_value(valued(tensor.byte() if tensor.dtype is torch.bool else tensor)) for tensor in outputs)


def _only_value(values: torch.Tensor) -> float | None:
    if not values.numel() or values.is_complex():
        return None
    low, high = values.view(SIGNED.get(values.dtype, values.dtype)).aminmax()
    return float(low) if bool(low == high) else None  # NaN, too


def idle(one: Sequence[float | None], other: Sequence[float | None]) -> tuple[int, ...]:
    """The outputs that hold the same one number in two calls, as `only_values` gives them."""
    return tuple(place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a is not None and a == b)


def tells(idle: Sequence[int], usual: Sequence[float | None], found: Sequence[float | None]) -> bool:
    """Whether one of the outputs that are `idle` holds something else than it usually does."""
    return any(found[place] != usual[place] for place in idle if place < len(found))


def planted(inputs: list[Any], seed: int) -> list[Any]:
    """The arguments of forward with whole numbers among them put into the tensors of whole numbers whose dtype has them, at
    places drawn from `seed`; codes and truth values stay. The tensors are others, in the same layout, where anything is put into
    them, and `inputs` is returned where nothing is."""
    numbers = sorted({value for value in inputs if isinstance(value, int) and not isinstance(value, bool)})
    generators: dict[torch.device, torch.Generator] = {}

    def change(tensor: torch.Tensor) -> torch.Tensor:
        fitting = [n for n in numbers if tensor.dtype in WHOLE and _holds(tensor.dtype, n)]
        if not fitting or tensor.numel() < 2:
            return tensor
        generator = generators.setdefault(tensor.device, torch.Generator(tensor.device).manual_seed(seed))
        drawn = torch.rand(tensor.numel(), generator=generator, device=tensor.device)
        which = torch.randint(len(fitting), (tensor.numel(),), generator=generator, device=tensor.device)
        here = drawn < SHARE
        # Of 16 elements none would get a number in one draw of eight: each number is put somewhere, into half of them at most.
        surely = drawn.topk(min(len(fitting), tensor.numel() // 2), largest=False).indices
        here[surely], which[surely] = True, torch.arange(surely.numel(), device=tensor.device)
        values = torch.tensor(fitting, dtype=tensor.dtype, device=tensor.device)
        return torch.empty_like(tensor).copy_(torch.where(here.view(tensor.shape), values[which].view(tensor.shape), tensor))

    made = [mapped(value, change) for value in inputs]
    pairs = zip(tensors_of(made), tensors_of(inputs), strict=True)
    return made if any(mine is not given for mine, given in pairs) else inputs


def _holds(dtype: torch.dtype, number: int) -> bool:
    bounds = torch.iinfo(dtype)
    return bounds.min <= number <= bounds.max
