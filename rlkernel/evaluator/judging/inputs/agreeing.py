"""Rows of several tensors that point the same way, or opposite ways, which show a bound on their cosine or on a distance.

Random vectors are nearly orthogonal, and none are close. So `torch.where(cosine > 0.9995, straight, curved)` of two inputs always
takes one side, and so does `torch.where(cosine > -0.88, turned, line)` of inputs and the rows of a weight. Rows of one number are
planted: in all inputs of one shape, at the same places, or in one input beside a parameter whose rows are shifted by several
times their size, so that they nearly are such rows, whatever names them. Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import torch
from torch import nn

from rlkernel.evaluator.judging.inputs.guards import bared
from rlkernel.evaluator.judging.references.reference_calls import state_of
from rlkernel.evaluator.messages.judgement import Plant
from rlkernel.evaluator.program.tensors import overwrite

TIMES = 6.0
"""How many times its root mean square a parameter is shifted by: its rows and those of one number have a cosine of 0.986."""
MOST_MATRICES = 2
"""Parameters that are tried."""


def agreeing(inputs: Sequence[torch.Tensor], places: Sequence[int], matrices: Mapping[str, torch.Tensor]) -> Iterator[Plant]:
    """Rows of one number in inputs of one shape, or in one of them beside a parameter with rows as long."""
    for plant in bared(inputs, places):
        if plant.along:
            yield from (replace(plant, values=(1.0,), opposed=opposed) for opposed in (False, True))
    for name, matrix in list(matrices.items())[:MOST_MATRICES]:
        for place in places:
            if inputs[place].dim() > 1 and inputs[place].shape[-1] == matrix.shape[-1]:
                yield Plant(place, (1.0, -1.0), along=(-1,), toward=name)


def move_toward(model: nn.Module, plant: Plant) -> nn.Module:
    """The module, one of whose parameters is shifted, if rows are planted beside one."""
    if plant.toward:
        with torch.no_grad():
            parameter = state_of(model)[plant.toward]
            size = parameter.double().square().mean().sqrt().to(parameter.dtype)
            overwrite(parameter, parameter + TIMES * size)
    return model
