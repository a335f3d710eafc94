"""What a module of a reference is made of, so that the same can be made once more: by the judge, and to say what was ignored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import torch
from torch import nn

from rlkernel.evaluator.judging.references.blame import ignored
from rlkernel.evaluator.judging.references.ending import Usual
from rlkernel.evaluator.judging.references.reference_calls import call, constants, mapped
from rlkernel.evaluator.judging.references.related import give_others
from rlkernel.evaluator.program.replaced import hold
from rlkernel.types import Precision


class SeededReference(Protocol):
    """What gives modules and inputs from seeds: a `Reference`, or one on a device."""

    @property
    def fixed(self) -> tuple[str, ...]: ...

    def model(self, seed: int) -> nn.Module: ...

    def inputs(self, seed: int) -> list[Any]: ...


@dataclass(frozen=True, slots=True)
class Before:
    """How often a module is called, on other inputs, before it is judged: as often as the candidate needs to prepare."""

    usual: int = 0
    """In the mode that its constructor leaves it in."""
    other: int = 0
    """After that in the other of train and eval mode, if it is judged there."""


AT_ONCE = Before()
"""Modules are judged in their first call."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What all modules of one candidate's rounds share."""

    precision: Precision
    before: Before = AT_ONCE
    replaced: tuple[str, ...] = ()
    """Attributes that forward replaces for its next call, see `program.replaced`."""
    usual: Usual = field(default_factory=Usual, compare=False)
    """The time of the rounds that are as the problem is written, and what others may take."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a module of a reference is made of, so that the same can be made once more. It holds no weights."""

    reference: SeededReference
    terms: Terms
    init_seed: int
    other: bool
    """Whether the module is judged in the other of train and eval mode."""
    first_inputs: list[Any]
    """The inputs of the calls that come before; empty where there are none."""

    def drawn(self) -> nn.Module:
        """A new module, as its seed gives it."""
        model = self.reference.model(self.init_seed)
        hold(model, self.terms.replaced)
        return model

    def perturbed(self) -> nn.Module:
        """The same with its parameters at values that no constructor gives, see `give_others`."""
        model = self.drawn()
        give_others(model, self.init_seed, self.reference.fixed, constants(model, self.reference.fixed))
        return model

    def prepare(self, model: nn.Module) -> nn.Module:
        """Make the calls that come before a module is judged, and turn it to the mode in which it is."""
        for _ in range(self.terms.before.usual):
            call(model, mapped(self.first_inputs, torch.clone), self.init_seed)
        if self.other:
            model.train(not model.training)
            for _ in range(self.terms.before.other):
                call(model, mapped(self.first_inputs, torch.clone), self.init_seed)
        return model

    def blame(self, inputs: list[Any], forward_seed: int) -> Callable[[Sequence[torch.Tensor]], str]:
        """What names the constants that wrong outputs ignore; asked for at most once a candidate."""

        def blame(found: Sequence[torch.Tensor]) -> str:
            drawn = constants(self.drawn(), self.reference.fixed)
            again = partial(mapped, inputs, torch.clone)
            return ignored(lambda: self.prepare(self.perturbed()), drawn, again, forward_seed, found)

        return blame
