"""Puts planted numbers among the arguments of forward, at places drawn from a seed. Source: ours."""

from __future__ import annotations

from typing import Any

import torch

from rlkernel.evaluator.judging.references.reference_calls import mapped_at, tensors_of
from rlkernel.evaluator.messages.judgement import Plant

SHARE = 0.125
"""The share of an input's elements, or of its rows, that get a planted number; one at least."""


def planted(inputs: list[Any], plant: Plant, seed: int) -> list[Any]:
    """The arguments of forward with numbers planted at places drawn from `seed`; no other tensors than those named are others.
    What has one number for each slice has them where the slices do."""
    axes = tensors_of(inputs)[plant.place].dim()

    def change(tensor: torch.Tensor, sign: int) -> torch.Tensor:
        device = tensor.device
        generator = torch.Generator(device).manual_seed(seed)
        shape = list(tensor.shape)
        for axis in plant.along if tensor.dim() == axes else ():
            shape[axis] = 1
        drawn = torch.rand(shape, generator=generator, device=device)
        surely = drawn.flatten().topk(min(len(plant.values), drawn.numel()), largest=False).values[-1]
        here = drawn <= surely.clamp(min=SHARE)
        if plant.beside:
            here &= (tensor != 0) & ~torch.eye(tensor.shape[-1], dtype=torch.bool, device=device)
        # One after the other, so that each is somewhere.
        which = here.flatten().cumsum(0, dtype=torch.int32).view(shape) % len(plant.values)
        made = tensor
        for index, value in enumerate(plant.values):
            number = torch.tensor(sign * value, dtype=torch.float64).to(made.dtype)
            made = torch.where(here & (which == index), number.to(device), made)
        return torch.empty_like(tensor).copy_(made)

    inputs = mapped_at(inputs, plant.place, lambda tensor: change(tensor, 1))
    for place in plant.also:
        inputs = mapped_at(inputs, place, lambda tensor: change(tensor, -1 if plant.opposed else 1))
    return inputs
