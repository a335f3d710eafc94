"""A few weights of a reference that are far larger than the others, as those of trained networks are.

What a file draws by the rules of initialisation lies within a few times its root mean square, so that 8 bits with one scale for a
row hold it nearly as exactly as bfloat16 does. Whoever quantises the weights in the first call would read half of the bytes, and
be right within half precision's bounds. Floating-point numbers of any kind bear outliers. Source: ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from rlkernel.evaluator.judging.references.plan import SeededReference
from rlkernel.evaluator.judging.references.reference_calls import constants, state_of
from rlkernel.evaluator.judging.references.related import drawn_weights
from rlkernel.evaluator.program.folding import OUTLIER
from rlkernel.evaluator.program.tensors import overwrite

NOTE = f"some weights times {OUTLIER:g}"
"""Stands behind a miss in such a round."""
SHARE = 256
"""One weight in so many is an outlier, on average."""
# Each is `OUTLIER` times as large, so that these weights make nearly all of a row's size. Weights of 8 bits then miss by 3 % of
# it with a scale for 256 of them or more, by 2.2 % for 128, and by less than half precision hides for 64.


@dataclass(frozen=True, slots=True)
class WithOutliers:
    """A reference whose drawn weights of two dimensions and more have outliers."""

    reference: SeededReference

    @property
    def fixed(self) -> tuple[str, ...]:
        return self.reference.fixed

    def inputs(self, seed: int) -> list[Any]:
        return self.reference.inputs(seed)

    def model(self, seed: int) -> nn.Module:
        return with_outliers(self.reference.model(seed), seed, self.fixed)


def with_outliers(model: nn.Module, seed: int, fixed: Sequence[str]) -> nn.Module:
    """The module, some of whose weights are outliers now; which ones comes from `seed`."""
    state = state_of(model)
    with torch.no_grad():
        for name in weights(model, fixed):
            device = state[name].device
            generator = torch.Generator(device).manual_seed(seed)
            chosen = torch.rand(state[name].shape, generator=generator, device=device) < 1.0 / SHARE
            overwrite(state[name], torch.where(chosen, OUTLIER * state[name], state[name]))
    return model


def weights(model: nn.Module, fixed: Sequence[str]) -> list[str]:
    """The names of the weights that may have outliers: what is trained and drawn, and matches no pattern in `fixed`."""
    state = state_of(model)
    free = [(name, state[name]) for name in drawn_weights(model, fixed, constants(model))]
    return [name for name, weight in free if weight.dim() > 1 and weight.numel() >= SHARE]
