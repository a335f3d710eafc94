"""Values of a reference's parameters that no constructor gives, so that nothing holds of them but what forward computes.

Those that are the same throughout, such as ones and zeros, get others altogether. Of those that are drawn some numbers are
halved, because what is drawn may be related: one parameter is a copy of another, as that of a momentum encoder, or its norm, as
the gain of a normalised weight; a matrix is orthogonal; numbers follow a rule, such as `torch.linspace`. Whoever leaves out a
parameter that the others tell would be right otherwise. Source: ours.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

import torch
from torch import nn

from rlkernel.evaluator.judging.references.reference_calls import perturb, state_of
from rlkernel.evaluator.program.codes import holds_numbers
from rlkernel.evaluator.program.folding import HALVED
from rlkernel.evaluator.program.tensors import overwrite

HALVED_SHARE = 0.25
"""The share of a drawn weight's numbers that are multiplied by `HALVED`."""
MANY = 1 << 10
"""From how many of these on it is their share on average alone."""


def give_others(model: nn.Module, seed: int, fixed: Sequence[str], same: Mapping[str, torch.Tensor]) -> None:
    """Give a module's parameters such values, which come from `seed`. fixed: patterns of the names that keep what they hold;
    same: those that are the same throughout, see `constants`."""
    perturb(model, seed, same)
    halve_some(model, seed, drawn_weights(model, fixed, same))


def drawn_weights(model: nn.Module, fixed: Sequence[str], same: Container[str]) -> list[str]:
    """The names of the trained parameters that are drawn: all that hold at least three numbers, but for those that are the `same`
    throughout, see `constants`, and for names that match a pattern of `fixed`."""
    trained = [(name, weight) for name, weight in model.named_parameters() if weight.requires_grad and name not in same]
    free = [(name, weight) for name, weight in trained if not any(fnmatchcase(name, pattern) for pattern in fixed)]
    return [name for name, weight in free if holds_numbers(weight) and weight.numel() > 2]


def halve_some(model: nn.Module, seed: int, names: Iterable[str]) -> None:
    """Halve a `HALVED_SHARE` of the numbers of the parameters of these names, without waiting for a GPU. Which ones is drawn from
    `seed`, and differs between parameters, so that what is related as it is drawn is so no more: a parameter that is a copy of
    another one or its norm, a matrix that is orthogonal, numbers that follow a rule."""
    generators: dict[torch.device, torch.Generator] = {}
    state = state_of(model)
    with torch.no_grad():
        for name in names:
            tensor = state[name]
            generator = generators.setdefault(tensor.device, torch.Generator(tensor.device).manual_seed(seed))
            drawn = torch.rand(tensor.shape, generator=generator, device=tensor.device)
            few = max(1, int(HALVED_SHARE * tensor.numel()))  # most of a small one stay, by which it is known, see `folding.py`
            most = HALVED_SHARE if few > MANY else drawn.flatten().kthvalue(few).values
            overwrite(tensor, torch.where(drawn <= most, HALVED * tensor, tensor))
