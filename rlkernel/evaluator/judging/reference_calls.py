"""Calls of a reference, as the judges of both paths make them: seeds, inputs, weights, and the same in float64."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from rlkernel.evaluator.program.tensors import flatten
from rlkernel.reference import seed_generators

STRESS = 8.0
"""Factor on floating-point inputs in a stressed round."""


def draw_seed() -> int:
    """From the operating system, after the candidate was traced."""
    return secrets.randbits(31)


def tensors_of(value: Any) -> list[torch.Tensor]:
    """The tensors in a structure, in order."""
    found: list[torch.Tensor] = []
    flatten(value, found)
    return found


def mapped(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """A structure with its tensors replaced, in order."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: mapped(item, change) for key, item in value.items()}
    return [mapped(item, change) for item in value] if isinstance(value, (list, tuple)) else value


def stressed(inputs: list[Any]) -> list[Any]:
    return [x * STRESS if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in inputs]


def call(model: nn.Module, inputs: list[Any], seed: int) -> Any:
    seed_generators(seed)
    with torch.no_grad():
        return model(*inputs)


def exact_outputs(model: nn.Module, inputs: list[Any], seed: int) -> list[torch.Tensor] | None:
    """In float64, on copies of `inputs`; `model` is turned into it. None where it does not run there and is its own measure."""
    try:
        return tensors_of(call(model.double(), mapped(inputs, _doubled), seed))
    except (RuntimeError, ValueError, TypeError):
        return None


def _doubled(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.float64 if tensor.is_floating_point() else tensor.dtype, copy=True)


def state_of(model: nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers by name, in place."""
    return {name: tensor.detach() for name, tensor in [*model.named_parameters(), *model.named_buffers()]}
