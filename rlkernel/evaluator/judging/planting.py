"""Inputs among which the numbers are that forward is given besides, for references that have nothing to do otherwise.

What a problem's author draws may never show what a kernel does: a count of 501,010 in numbers up to 100,000 is always zero,
and whoever does nothing is right. Where all outputs hold one number, whatever is drawn, whole numbers among the arguments are put
into the tensors of whole numbers, at random places. If the reference then gives another answer, candidates are judged there, too,
and it is found out there whether a kernel's result reaches the output. Source: ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from rlkernel.evaluator.judging.reference_calls import mapped, tensors_of
from rlkernel.evaluator.program.codes import SIGNED, valued

SHARE = 0.125
"""The share of elements that get a number of the arguments."""
WHOLE = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
PLANTED = "numbers of forward's arguments among its inputs"
"""Stands behind a miss in such a round."""


def only_values(outputs: Sequence[torch.Tensor]) -> tuple[float, ...]:
    """The one number that each output holds, of unsigned ones as the signed number of the same bits; nothing where an output
    holds several, or none. A GPU is waited for."""
    found = []
    for tensor in outputs:
        values = valued(tensor.byte() if tensor.dtype is torch.bool else tensor)
        if not values.numel() or values.is_complex():
            return ()
        low, high = values.view(SIGNED.get(values.dtype, values.dtype)).aminmax()
        if not bool(low == high):  # NaN, too
            return ()
        found.append(float(low))
    return tuple(found)


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
        here = torch.rand(tensor.shape, generator=generator, device=tensor.device) < SHARE
        which = torch.randint(len(fitting), tensor.shape, generator=generator, device=tensor.device)
        values = torch.tensor(fitting, dtype=tensor.dtype, device=tensor.device)
        return torch.empty_like(tensor).copy_(torch.where(here, values[which], tensor))

    made = [mapped(value, change) for value in inputs]
    pairs = zip(tensors_of(made), tensors_of(inputs), strict=True)
    return made if any(mine is not given for mine, given in pairs) else inputs


def _holds(dtype: torch.dtype, number: int) -> bool:
    bounds = torch.iinfo(dtype)
    return bounds.min <= number <= bounds.max
