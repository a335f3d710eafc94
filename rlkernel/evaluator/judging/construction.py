"""A module of a reference as a round judges it: with its weights, in float64 besides, called any number of times."""

from __future__ import annotations

import copy
import random
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import nn

from rlkernel.evaluator.draws import SEED_BITS
from rlkernel.evaluator.judging.errors.choices import Choice, Choosing
from rlkernel.evaluator.judging.errors.comparison import bits
from rlkernel.evaluator.judging.errors.noise import confirmed, moved_call
from rlkernel.evaluator.judging.errors.own_error import Cores, OwnError, casts, other_choices, own_error, steady
from rlkernel.evaluator.judging.errors.tensor_cores import cores_of
from rlkernel.evaluator.judging.errors.tolerance import beside as more_exact
from rlkernel.evaluator.judging.errors.tolerance import of_state, tolerance
from rlkernel.evaluator.judging.inputs.nudging import is_finer, is_finest, nudged
from rlkernel.evaluator.judging.inputs.places import places as places_of
from rlkernel.evaluator.judging.inputs.shown import held, meant, note_of, put
from rlkernel.evaluator.judging.inputs.stress import (
    ALWAYS_SAME,
    APART,
    OF_ONE_VALUE,
    OTHER_PARAMETERS,
    STRESS_NOTES,
    UNSCALED,
    all_zero,
    holds_one,
    stressed,
    varies,
)
from rlkernel.evaluator.judging.modules import made, other_roundings
from rlkernel.evaluator.judging.references.plan import Plan, SeededReference, Terms
from rlkernel.evaluator.judging.references.reference_calls import (
    REFUSALS,
    balanced,
    call,
    counts_as_state,
    exact_outputs,
    exact_with_state,
    laid_as_drawn,
    mapped,
    state_of,
    tensors_of,
)
from rlkernel.evaluator.judging.rounds import Expected, fates
from rlkernel.evaluator.messages.judgement import Balance, Edge, InputFate, Places, Planting, Stress, Tolerance
from rlkernel.evaluator.program.codes import valued, widened
from rlkernel.evaluator.program.tensors import copy_of, flatten, lent

BALANCED = "operands out of half precision's range"
"""Stands behind a miss in the round that half precision does not survive."""


@dataclass(frozen=True, slots=True)
class Round:
    """One call of forward: what the runner is given, and what is expected of it."""

    init_seed: int
    forward_seed: int
    again: bool
    """The module of the round before is called once more."""
    state: dict[str, torch.Tensor]
    """The reference's parameters and buffers before the call; empty where the module of the round before is called again."""
    inputs: list[Any]
    expected: Expected
    products: bool
    """Whether the reference has products that a candidate may compute in tf32."""
    errors: tuple[OwnError, ...]
    """The reference's own, of each output."""
    first_inputs: list[Any]
    """The inputs of the calls that come before the module is judged, on both sides; empty where there are none."""
    enlarged: bool = False
    """Whether inputs that never vary do, and others are larger than they are drawn, so that they may hide it."""

    @property
    def own_measures(self) -> frozenset[int]:
        """The places of the outputs whose measure is the reference itself, because float64 gives something else."""
        pairs = enumerate(zip(self.expected.reference, self.expected.exact, strict=True))
        return frozenset(place for place, (found, exact) in pairs if exact is found)


class Construction:
    """One module of the reference, and the same in float64; called any number of times. Its seeds come from `seeds`."""

    exact_model: nn.Module
    """The module in float64, from the first round on, with the calls made that `model` has made."""

    def __init__(
        self,
        reference: SeededReference,
        terms: Terms,
        seeds: random.Random,
        *,
        other: bool = False,
        perturbed: bool = False,
        balance: Balance | None = None,
        planting: Planting | None = None,
    ) -> None:
        """planting: what is done to the inputs of each round."""
        self.precision, self.perturbed, self.balance, self.planting = terms.precision, perturbed, balance, planting
        self._seeds = seeds
        init_seed = seeds.getrandbits(SEED_BITS)
        plan = Plan(reference, terms, init_seed, other, [])
        self._build = partial(made, plan, perturbed, balance, planting)
        self.model = self._build()
        self._given = _copied(state_of(self.model))
        self._prepared = bool(terms.before.usual or (other and terms.before.other))
        if self._prepared:
            plan = replace(plan, first_inputs=reference.inputs(seeds.getrandbits(SEED_BITS)))
        self.plan = plan
        plan.prepare(self.model)
        self.calls = 0
        self._kept: frozenset[str] = frozenset()
        """The parameters and buffers that the last call has left as they were."""
        self._chooses, self._choices = True, dict[int, Choice]()
        """Whether indices may be among the outputs, and those of the last call of which some are left open."""
        self._written: tuple[int, ...] = ()
        """The places of the arguments that the last call has changed and not returned."""

    def round(self, stress: Stress, places: Places | None = None) -> Round:
        """Draw inputs and call the reference. places: what is done to single inputs under stress, where that is known. Raises
        what the reference raises."""
        forward_seed, input_seed = self._seeds.getrandbits(SEED_BITS), self._seeds.getrandbits(SEED_BITS)
        drawn = self.plan.reference.inputs(input_seed)
        usual = drawn if self.planting is None else put(self.planting, drawn, input_seed)
        places = self._places(input_seed, stress) if places is None else places
        inputs = laid_as_drawn(balanced(stressed(usual, stress, places), self.balance), drawn)
        mine = mapped(inputs, copy_of)
        if not self.calls:
            self.exact_model = copy.deepcopy(self.model)
            with suppress(*REFUSALS):
                widened(self.exact_model)
        structure, found, before_call = self._call(mine, forward_seed)
        changed = {n: t for n, t in state_of(self.model).items() if n not in self._kept and counts_as_state(n, t)}
        after, before = tensors_of(mine), tensors_of(inputs)
        told = fates(after, before, found)
        self._written = tuple(place for place, fate in enumerate(told) if fate is InputFate.CHANGED)
        written = [after[place] for place in self._written]
        several, whole_call = stress is not Stress.NONE or self.planting is not None, [*found, *changed.values(), *written]
        rounded, whole = self._exactly(tuple(changed), whole_call, inputs, forward_seed, several)
        exact = whole[: len(found)]
        products = rounded is not None and any(t.dtype is torch.float32 for t in (*found, *written))
        near = partial(nudged, inputs, places.edges, meant=meant(self.planting), held=held(self.planting))
        moved = None if changed else exact_outputs(self.exact_model, near(), forward_seed)
        cores: Sequence[Cores | None] = rounded or [None] * len(whole)
        of_outputs, of_state_after = cores[: len(found)], cores[len(found) :]
        errors, beside = self._measured(found, exact, moved, of_outputs, inputs, places.edges, forward_seed)
        rows = zip([*changed.values(), *written], whole[len(found) :], of_state_after, strict=True)
        errors += [own_error(t, e, None, c) for t, e, c in rows]
        once_more = partial(moved_call, self.model, before_call, inputs, forward_seed, tuple(changed))
        count = len(found) + len(changed)
        own_of_written = [replace(steady(error), noise=0.0) for error in errors[count:]]
        errors = confirmed(errors[:count], [*found, *changed.values()], once_more)
        own_of_state = dict(zip(changed, map(steady, errors[len(found) :]), strict=True))
        errors = errors[: len(found)]
        allowed = tuple(tolerance(f.dtype, error, self.precision) for f, error in zip(found, errors, strict=True))
        alone = not (self.calls and changed)
        roundings = other_roundings(self.plan, self._build, inputs, forward_seed)
        expected = Expected(
            structure, tuple(found), tuple(exact), tuple(after), tuple(before), told, allowed, beside=beside,
            choices=self._choices, rounded=other_choices(errors, cores),
            state=self._changed(own_of_state, found, allowed), other=self.plan.other,
            written={
                place: of_state(tensor.dtype, own, found, allowed, self.precision)
                for place, tensor, own in zip(self._written, written, own_of_written, strict=True)
            },
            note=self._note(stress, usual, places),
            ordinary=stress is Stress.NONE and not (self.plan.other or self.perturbed or self.balance or self.planting),
            lent=tuple(lent(f, after) for f in found),
            blame=self.plan.blame(inputs, forward_seed) if self.perturbed and not self.calls else None,
            roundings=roundings if alone else None,
        )  # fmt: skip
        given, self._given = self._given, {}
        self.calls += 1
        return Round(
            self.plan.init_seed, forward_seed, self.calls > 1, given, inputs, expected, products, tuple(errors),
            self.plan.first_inputs, stress not in UNSCALED and varies(usual, stress, places),
        )  # fmt: skip

    def _call(self, inputs: list[Any], forward_seed: int) -> tuple[Any, list[torch.Tensor], dict[str, torch.Tensor]]:
        """The structure and the tensors that the reference returns, and its parameters and buffers from before: copies of those
        that the call changes. Notes what it has left as it was."""
        before = self._given if not (self.calls or self._prepared) else _copied(state_of(self.model))
        found: list[torch.Tensor] = []
        with Choosing() if self._chooses else nullcontext(Choosing()) as choosing:
            structure = flatten(call(self.model, inputs, forward_seed), found)
        self._choices = choosing.of(found)
        self._chooses = any(not output.is_floating_point() for output in found)
        self._kept = frozenset(n for n, t in state_of(self.model).items() if n in before and _equal(t, before[n]))
        now = state_of(self.model)
        return structure, found, {n: now[n] if n in self._kept else t for n, t in before.items()}

    def exactly(self, inputs: list[Any], forward_seed: int) -> list[torch.Tensor] | None:
        """The outputs in float64 for inputs like those of the last call, after it, and behind them the arguments that it changes;
        the module is left as it is."""
        return exact_with_state(self.copied(), inputs, forward_seed, (), self._written)

    def copied(self) -> nn.Module:
        """A copy of the module in float64 that shares with it what a call leaves as it is: weights may be most of the memory."""
        state = {**dict(self.exact_model.named_parameters()), **dict(self.exact_model.named_buffers())}
        return copy.deepcopy(self.exact_model, {id(tensor): tensor for name, tensor in state.items() if name in self._kept})

    def _sides(
        self, found: Sequence[torch.Tensor], exact: Sequence[torch.Tensor], moved: Sequence[torch.Tensor], inputs: list[Any],
        edges: Sequence[Edge], forward_seed: int,
    ) -> list[torch.Tensor]:  # fmt: skip
        """What the rounding of inputs would make of each output: as `moved`, in which all of them are, or with those alone that
        are no coarser than the output."""
        given, sides, partly = tensors_of(inputs), list(moved), dict[torch.dtype, Sequence[torch.Tensor]]()
        for place, output in enumerate(found):
            if is_finest(output, given):
                sides[place] = exact[place]
            elif is_finer(output, given):
                if output.dtype not in partly:
                    some = nudged(inputs, edges, output.dtype, meant(self.planting), held(self.planting))
                    partly[output.dtype] = exact_outputs(self.exact_model, some, forward_seed) or exact
                sides[place] = partly[output.dtype][place]
        return sides

    def _measured(
        self, found: Sequence[torch.Tensor], exact: list[torch.Tensor], moved: Sequence[torch.Tensor] | None,
        cores: Sequence[Cores | None], inputs: list[Any], edges: Sequence[Edge], forward_seed: int,
    ) -> tuple[list[OwnError], dict[int, tuple[torch.Tensor, Tolerance]]]:  # fmt: skip
        """The reference's own error of each output, and by their places those whose numbers in float64 may be meant, with what is
        allowed beside them. `exact` becomes the reference itself where that is its own measure."""
        gaps = self.balance is None  # an argument that is also added without a product leaves tiny values beside usual ones
        sides = list(exact) if not moved else self._sides(found, exact, moved, inputs, edges, forward_seed)
        errors = [own_error(f, e, m, c, gaps=gaps) for f, e, m, c in zip(found, exact, sides, cores, strict=True)]
        given = [*tensors_of(inputs), *state_of(self.model).values()]
        errors = [replace(error, cast=casts(f, given)) for f, error in zip(found, errors, strict=True)]
        beside = {
            i: (e, more_exact(f.dtype, error, self.precision))
            for i, (f, e, error) in enumerate(zip(found, exact, errors, strict=True))
            if e.shape == f.shape and not error.steady and bool(torch.isfinite(valued(e)).all())
        }
        for i, f in enumerate(found):
            if errors[i].cast:
                exact[i], errors[i] = f, steady(errors[i])
        for i, (f, e, c) in enumerate(zip(found, exact, cores, strict=True)):
            if e.shape != f.shape or not errors[i].steady:  # the reference is its own measure
                again = own_error(f, f, f if moved is None else moved[i], c, gaps=gaps)
                exact[i], errors[i] = f, replace(again, noise=errors[i].noise)
        return errors, beside

    def _exactly(
        self, names: Sequence[str], found: list[torch.Tensor], inputs: list[Any], forward_seed: int, several: bool
    ) -> tuple[list[Cores] | None, list[torch.Tensor]]:
        """What tensor cores may make of each of the tensors `found`, see `cores_of`, and these tensors in float64: the outputs of
        a call, and behind them the state of these names and the arguments that it changes. The exact module has made the call
        afterwards."""
        last = [self.exact_model]

        def of_copy() -> list[torch.Tensor] | None:
            last[0] = self.copied()
            return exact_with_state(last[0], inputs, forward_seed, names, self._written)

        rounded, exact = cores_of(of_copy, found, self.precision, several=several)
        if exact is None:
            exact = exact_with_state(self.exact_model, inputs, forward_seed, names, self._written)
        else:  # nothing was rounded, so that the copy has made the very call
            self.exact_model = last[0]
        return rounded, exact or list(found)

    def _changed(
        self, errors: dict[str, OwnError], outputs: list[torch.Tensor], allowed: Sequence[Tolerance]
    ) -> dict[str, tuple[torch.Tensor, Tolerance]]:
        """The state that forward has changed, and what is allowed of it."""
        mine, found = state_of(self.model), {}
        for name, own in errors.items():
            found[name] = (mine[name].clone(), of_state(mine[name].dtype, own, outputs, allowed, self.precision))
        return found

    def _places(self, seed: int, stress: Stress) -> Places:
        """What is done to single inputs in a round of these inputs."""
        build = self.plan.perturbed if self.perturbed else self.plan.drawn
        init_seed = self.plan.init_seed
        return places_of(build, self.plan.reference.inputs, (seed, init_seed, init_seed), stress)

    def _note(self, stress: Stress, usual: list[Any], places: Places) -> str:
        notes = list(STRESS_NOTES[stress])
        rest = [tensor for place, tensor in enumerate(tensors_of(usual)) if place not in places.kept]
        one = stress is not Stress.NONE and (places.holed or any(all_zero(tensor) or holds_one(tensor) for tensor in rest))
        notes += [OF_ONE_VALUE] if one else []
        notes += [ALWAYS_SAME] if places.turned or places.moved else []
        notes += [APART] if places.apart or places.rows else []
        notes += [BALANCED] if self.balance is not None else []
        notes += [] if self.planting is None else [note_of(self.planting)]
        notes += [OTHER_PARAMETERS] if self.perturbed else []
        notes += ["in a second call"] if self.calls else []
        return f" ({', '.join(notes)})" if notes else ""


def _copied(state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in state.items()}


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    return torch.equal(bits(one), bits(other))
