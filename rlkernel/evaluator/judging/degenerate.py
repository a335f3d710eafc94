"""Refuses problems that can be solved without doing the work: a constant, ignored inputs, parameters that do not matter.

The checks follow the filters of robust-kbench (output range, input and parameter impact), made relative to the output's norm;
the thresholds are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import nn

from rlkernel.errors import BrokenReference
from rlkernel.evaluator.program.codes import holds_numbers, is_code, valued
from rlkernel.reference import Reference, describe, load_reference
from rlkernel.seeds import seed_generators
from rlkernel.types import Problem

SEEDS = (0, 1, 2)
SCALES = (0.5, 2.0)
"""The factors by which floating-point inputs are multiplied when looking for NaN and Inf."""
CONSTANT = 1e-2
"""A constant within this distance of the outputs, relative to their norm, would pass for them."""
CHANGE = 1e-3
"""Something matters when the output moves by more than this, relative to its norm."""
ZERO = {torch.float16: 1e-2, torch.bfloat16: 1e-2}
"""The absolute distance below which zeros pass in KernelBench's comparison, by dtype; 1e-4 for other floating types."""


def degenerate(problem: Problem, *, small: bool = True, device: str = "cpu", allow_neutral: bool = False) -> str | None:
    """Why a problem must not be trained on, as one line, or None when it is sound.

    `small` runs it at its CPU shapes. `allow_neutral` accepts parameters that are all zeros or all ones (KernelBench's own
    files leave the affine weights of their norms so). Raises BrokenReference when the reference does not run at all.
    """
    reference = load_reference(problem.source, small=small, name=problem.name)
    with torch.no_grad():
        for reason in _reasons(_Trial(reference, device), allow_neutral):
            return reason
    return None


def is_random(problem: Problem, *, small: bool = True, device: str = "cpu") -> bool:
    """Whether two calls of a reference on the same inputs differ, as dropout's do. Raises BrokenReference."""
    trial = _Trial(load_reference(problem.source, small=small, name=problem.name), device)
    with torch.no_grad():
        model, inputs = trial.model(0), trial.inputs(0)
        first, second = (trial.forward(model, inputs, seed) for seed in (0, 1))
    return any(not torch.equal(one.nan_to_num(), other.nan_to_num()) for one, other in zip(first, second, strict=True))


class _Trial:
    """Runs one reference on chosen inputs. The generator is seeded before each forward, so that dropout repeats itself."""

    def __init__(self, reference: Reference, device: str) -> None:
        self.reference = reference
        self.device = device

    def model(self, seed: int) -> nn.Module:
        return self.reference.model(seed).to(self.device)

    def inputs(self, seed: int) -> list[Any]:
        return [_map(lambda tensor: tensor.to(self.device), value) for value in self.reference.inputs(seed)]

    def forward(self, model: nn.Module, inputs: Sequence[Any], seed: int = 0) -> list[torch.Tensor]:
        """The output tensors of one forward, in order."""
        seed_generators(seed)
        try:
            outputs = model(*[_map(torch.clone, value) for value in inputs])
        except (Exception, SystemExit) as error:  # the reference's own failure, told in one line
            name = self.reference.name
            raise BrokenReference(f"{name}: forward raised {describe(error, name)}") from error
        return [valued(tensor) for tensor in _tensors(outputs)]


def _reasons(trial: _Trial, allow_neutral: bool) -> Iterator[str]:
    models = [trial.model(seed) for seed in SEEDS]
    inputs = [trial.inputs(seed) for seed in SEEDS]
    outputs = [trial.forward(model, values) for model, values in zip(models, inputs, strict=True)]
    if not outputs[0]:
        yield "forward returns no tensor"
    yield from _unsound_values(trial, models[0], inputs[0], outputs)
    yield from _idle_inputs(trial, models[0], inputs, outputs[0])
    yield from _idle_parameters(trial, models[0], inputs[0], outputs[0], allow_neutral)


def _unsound_values(trial: _Trial, model: nn.Module, inputs: list[Any], outputs: list[list[torch.Tensor]]) -> Iterator[str]:
    for index, of_seeds in enumerate(zip(*outputs, strict=True)):
        values = torch.cat([output.flatten().double() for output in of_seeds])
        if not values.isfinite().all():
            yield f"output {index} holds NaN or Inf"
        tolerance = ZERO.get(of_seeds[0].dtype, 1e-4) if of_seeds[0].is_floating_point() else 0.0
        if (largest := float(values.abs().max())) <= tolerance:
            yield f"output {index} is within {tolerance:g} of zero (largest {largest:.1e}): zeros would pass"
        if _distance(values, values.mean()) <= CONSTANT:
            yield f"output {index} is constant: {float(values.mean()):.4g} is within {CONSTANT:.0%} of it, relative to its norm"
    for scale in SCALES:
        scaled = [_map(partial(_scale, by=scale), value) for value in inputs]
        for index, output in enumerate(trial.forward(model, scaled)):
            if not output.isfinite().all():
                yield f"output {index} holds NaN or Inf when the inputs are multiplied by {scale:g}"


def _idle_inputs(trial: _Trial, model: nn.Module, inputs: list[list[Any]], outputs: list[torch.Tensor]) -> Iterator[str]:
    redrawn = trial.forward(model, [_other(old, new) for old, new in zip(inputs[0], inputs[1], strict=True)])
    for index, (output, other) in enumerate(zip(outputs, redrawn, strict=True)):
        if _distance(other, output) <= CHANGE:
            yield f"output {index} does not depend on the inputs"
    for position, (old, new) in enumerate(zip(inputs[0], inputs[1], strict=True)):
        if not any(True for _ in _tensors(old)):
            continue
        changed = trial.forward(model, [*inputs[0][:position], _other(old, new), *inputs[0][position + 1 :]])
        if not _moved(outputs, changed):
            yield f"input {position} does not matter: other values leave the output as it is"


def _idle_parameters(
    trial: _Trial, model: nn.Module, inputs: list[Any], outputs: list[torch.Tensor], allow_neutral: bool
) -> Iterator[str]:
    for name, parameter in model.named_parameters():
        kept = parameter.clone()
        if is_code(parameter.dtype):
            continue
        generator = torch.Generator(device=trial.device).manual_seed(1)
        noise = torch.randn(parameter.shape, generator=generator, device=parameter.device, dtype=torch.float32)
        parameter.add_((noise * (float(kept.float().abs().mean()) or 1.0)).to(parameter.dtype))
        changed = trial.forward(model, inputs)
        parameter.copy_(kept)
        if not _moved(outputs, changed):
            yield f"parameter {name} does not matter: other values leave the output as it is"
        for neutral, word in ((0.0, "zeros"), (1.0, "ones")):
            if not allow_neutral and bool((kept == neutral).all()):
                yield f"parameter {name} is all {word}: a kernel that leaves it out would pass; draw it at random"


def _moved(outputs: list[torch.Tensor], changed: list[torch.Tensor]) -> bool:
    return any(_distance(after, before) > CHANGE for before, after in zip(outputs, changed, strict=True))


def _distance(values: torch.Tensor, other: torch.Tensor) -> float:
    """The norm of the difference divided by the norm of `values`; infinite when a value is not finite or the sizes differ."""
    if other.numel() not in (1, values.numel()):
        return float("inf")
    values, other = values.flatten().double(), other.flatten().double()
    norm = float(values.norm())
    difference = float((values - other).norm())
    if difference == 0.0:
        return 0.0
    return difference / norm if norm > 0.0 else float("inf")


def _other(old: Any, new: Any) -> Any:
    """The tensor to try instead: the fresh draw, or a changed copy where a file returns the same for every seed (a mask,
    positions)."""
    if isinstance(old, torch.Tensor) and isinstance(new, torch.Tensor):
        if old.shape != new.shape or not torch.equal(valued(old), valued(new)):
            return new
        if old.dtype == torch.bool:
            return ~old
        if holds_numbers(old):
            return old + torch.ones_like(old).cumsum(0) if old.dim() else old + 1.0
        codes = old.view(torch.uint8) if is_code(old.dtype) else old
        return codes.flatten().roll(1).reshape(old.shape).view(old.dtype)
    if isinstance(old, (list, tuple)):
        return [_other(one, two) for one, two in zip(old, new, strict=True)]
    return old


def _scale(tensor: torch.Tensor, by: float) -> torch.Tensor:
    return tensor * by if holds_numbers(tensor) else tensor


def _map(function: Callable[[torch.Tensor], torch.Tensor], value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, (list, tuple)):
        return [_map(function, item) for item in value]
    return value


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item)
