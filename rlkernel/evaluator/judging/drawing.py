"""The rounds of a problem that the CPU path judges: seeds, weights, inputs, and what the reference gives for them.

0  as the problem is written
1  the same module called again, on other inputs
2  another module, its constant parameters at other values; inputs scaled, and shifted where they are never negative or about zero
3  the other of train and eval mode, where that differs; constant parameters at other values
4  operands of products out of half precision's range, where a reference of float32 multiplies inputs: tf32 keeps that range

A round in which tf32 itself is wrong says nothing of candidates that may use it: then a milder one is drawn.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import torch
from torch import nn

from rlkernel.evaluator.draws import SEED_BITS, draws
from rlkernel.evaluator.judging.blame import ignored
from rlkernel.evaluator.judging.comparison import bits
from rlkernel.evaluator.judging.conversions import Conversions
from rlkernel.evaluator.judging.noise import confirmed, moved_call
from rlkernel.evaluator.judging.own_error import REFERENCE_FACTOR, Cores, OwnError, own_error, steady
from rlkernel.evaluator.judging.reference_calls import (
    STRESS,
    all_zero,
    balance_state,
    balanced,
    call,
    constants,
    counts_as_state,
    exact_of_copy,
    exact_outputs,
    exact_with_state,
    mapped,
    nudged,
    perturb,
    shifts,
    state_of,
    stressed,
    tensors_of,
)
from rlkernel.evaluator.judging.rounds import Expected, fates
from rlkernel.evaluator.judging.tensor_cores import balance_of, cores_of, halved
from rlkernel.evaluator.judging.tolerance import FLOOR, of_state, tolerance
from rlkernel.evaluator.judging.tolerance import beside as more_exact
from rlkernel.evaluator.messages.judgement import Balance, Stress, Tolerance
from rlkernel.evaluator.program.codes import valued
from rlkernel.evaluator.program.replaced import hold
from rlkernel.evaluator.program.tensors import flatten, lent
from rlkernel.reference import Reference
from rlkernel.types import Precision

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
    """The reference's parameters and buffers before the call."""
    inputs: list[Any]
    expected: Expected
    products: bool
    """Whether the reference has products that a candidate may compute in tf32."""
    errors: tuple[OwnError, ...]
    """The reference's own, of each output."""
    first_inputs: list[Any]
    """The inputs of the calls that come before the module is judged, on both sides; empty where there are none."""


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


@dataclass(frozen=True, slots=True)
class Terms:
    """What all modules of one candidate's rounds share."""

    precision: Precision
    before: Before = Before()
    replaced: tuple[str, ...] = ()
    """Attributes that forward replaces for its next call, see `program.replaced`."""


class Construction:
    """One module of the reference, and the same in float64; called any number of times. Its seeds come from `seeds`."""

    def __init__(
        self,
        reference: SeededReference,
        terms: Terms,
        seeds: random.Random,
        *,
        other: bool = False,
        perturbed: bool = False,
        balance: Balance | None = None,
    ) -> None:
        self.reference, self.precision, self.other, self.perturbed = reference, terms.precision, other, perturbed
        self.balance, self._seeds, before = balance, seeds, terms.before
        self.init_seed = seeds.getrandbits(SEED_BITS)
        self._replaced = terms.replaced
        self.model = self._made()
        if perturbed:
            perturb(self.model, self.init_seed, constants(self.model, reference.fixed))
        if balance is not None:
            balance_state(self.model, balance)
        self.given = {name: tensor.clone() for name, tensor in state_of(self.model).items()}
        self.first_inputs = reference.inputs(seeds.getrandbits(SEED_BITS)) if before.usual or (other and before.other) else []
        self._before = before
        self._prepare(self.model)
        self.exact_model = copy.deepcopy(self.model)
        self.calls = 0

    def _made(self) -> nn.Module:
        """A new module, as its seed gives it."""
        model = self.reference.model(self.init_seed)
        hold(model, self._replaced)
        return model

    def _prepare(self, model: nn.Module) -> None:
        """Make the calls that come before a module is judged, and turn it to the mode in which it is."""
        for _ in range(self._before.usual):
            call(model, mapped(self.first_inputs, torch.clone), self.init_seed)
        if self.other:
            model.train(not model.training)
            for _ in range(self._before.other):
                call(model, mapped(self.first_inputs, torch.clone), self.init_seed)

    def round(self, stress: Stress) -> Round:
        """Draw inputs and call the reference. Raises what the reference raises."""
        forward_seed, input_seed = self._seeds.getrandbits(SEED_BITS), self._seeds.getrandbits(SEED_BITS)
        usual = self.reference.inputs(input_seed)
        inputs = balanced(stressed(usual, stress), self.balance)
        state = {name: tensor.clone() for name, tensor in state_of(self.model).items()}
        mine = mapped(inputs, lambda tensor: tensor.clone(memory_format=torch.preserve_format))
        found: list[torch.Tensor] = []
        structure = flatten(call(self.model, mine, forward_seed), found)
        changed = {n: t for n, t in state_of(self.model).items() if counts_as_state(n, t) and not _equal(t, state[n])}
        rounded, whole = self._exactly(tuple(changed), [*found, *changed.values()], inputs, forward_seed)
        exact, products = whole[: len(found)], rounded is not None and any(t.dtype is torch.float32 for t in found)
        moved = None if changed else exact_outputs(self.exact_model, nudged(inputs), forward_seed)
        cores: Sequence[Cores | None] = rounded or [None] * len(whole)
        of_outputs, of_state_after = cores[: len(found)], cores[len(found) :]
        gaps = self.balance is None  # an argument that is also added without a product leaves tiny values beside usual ones
        errors = [own_error(f, e, m, c, gaps=gaps) for f, e, m, c in zip(found, exact, moved or exact, of_outputs, strict=True)]
        beside = {
            i: (e, more_exact(f.dtype, error, self.precision))
            for i, (f, e, error) in enumerate(zip(found, exact, errors, strict=True))
            if e.shape == f.shape and not error.steady and bool(torch.isfinite(valued(e)).all())
        }
        for i, (f, e, c) in enumerate(zip(found, exact, of_outputs, strict=True)):
            if e.shape != f.shape or not errors[i].steady:  # the reference is its own measure
                again = own_error(f, f, f if moved is None else moved[i], c, gaps=gaps)
                exact[i], errors[i] = f, replace(again, noise=errors[i].noise)
        rows = zip(changed.items(), whole[len(found) :], of_state_after, strict=True)
        errors += [own_error(t, e, None, c) for (_, t), e, c in rows]
        errors = confirmed(
            errors, [*found, *changed.values()], lambda: moved_call(self.model, state, inputs, forward_seed, tuple(changed))
        )
        own_of_state = dict(zip(changed, map(steady, errors[len(found) :]), strict=True))
        errors = errors[: len(found)]
        after, before = tensors_of(mine), tensors_of(inputs)
        allowed = tuple(tolerance(f.dtype, error, self.precision) for f, error in zip(found, errors, strict=True))
        expected = Expected(
            structure, tuple(found), tuple(exact), tuple(after), tuple(before), fates(after, before, found),
            allowed, beside=beside, state=self._changed(own_of_state, found, allowed), other=self.other,
            note=self._note(stress, usual),
            ordinary=stress is Stress.NONE and not (self.other or self.perturbed or self.balance),
            lent=tuple(lent(f, after) for f in found),
            blame=self._blame(inputs, forward_seed) if self.perturbed and not self.calls else None,
        )  # fmt: skip
        self.calls += 1
        given = state if self.calls > 1 else self.given
        return Round(
            self.init_seed, forward_seed, self.calls > 1, given, inputs, expected, products, tuple(errors), self.first_inputs
        )  # fmt: skip

    def _blame(self, inputs: list[Any], forward_seed: int) -> Callable[[Sequence[torch.Tensor]], str]:
        """What names the constants that wrong outputs ignore; asked for at most once a candidate."""

        def build() -> nn.Module:
            model = self._made()
            perturb(model, self.init_seed, constants(model, self.reference.fixed))
            self._prepare(model)
            return model

        def blame(found: Sequence[torch.Tensor]) -> str:
            drawn = constants(self._made(), self.reference.fixed)
            return ignored(build, drawn, lambda: mapped(inputs, torch.clone), forward_seed, found)

        return blame

    def _exactly(
        self, names: Sequence[str], found: list[torch.Tensor], inputs: list[Any], forward_seed: int
    ) -> tuple[list[Cores] | None, list[torch.Tensor]]:
        """What tensor cores may make of each of the tensors `found`, see `cores_of`, and these tensors in float64: the outputs of
        a call, and behind them the state of these names that it changes. The exact module has made the call afterwards."""
        copies: list[nn.Module] = []

        def of_copy() -> list[torch.Tensor] | None:
            copies.append(copy.deepcopy(self.exact_model))
            return exact_with_state(copies[-1], inputs, forward_seed, names)

        rounded, exact = cores_of(of_copy, found, self.precision)
        if exact is None:
            exact = exact_with_state(self.exact_model, inputs, forward_seed, names)
        else:  # nothing was rounded, so that the copy has made the very call
            self.exact_model = copies[-1]
        return rounded, exact or list(found)

    def _changed(
        self, errors: dict[str, OwnError], outputs: list[torch.Tensor], allowed: Sequence[Tolerance]
    ) -> dict[str, tuple[torch.Tensor, Tolerance]]:
        """The state that forward has changed, and what is allowed of it."""
        mine, found = state_of(self.model), {}
        for name, own in errors.items():
            found[name] = (mine[name].clone(), of_state(mine[name].dtype, own, outputs, allowed, self.precision))
        return found

    def _note(self, stress: Stress, usual: list[Any]) -> str:
        notes = [f"inputs scaled by {STRESS:g}"] if stress is Stress.SCALED else []
        notes += [f"inputs scaled by {STRESS:g} and shifted"] if stress is Stress.SHIFTED else []
        zeros = stress is not Stress.NONE and any(map(all_zero, tensors_of(usual)))
        notes += ["inputs of zeros at other values"] if zeros else []
        notes += [BALANCED] if self.balance is not None else []
        notes += ["constant parameters at other values"] if self.perturbed else []
        notes += ["in a second call"] if self.calls else []
        return f" ({', '.join(notes)})" if notes else ""


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    return torch.equal(bits(one), bits(other))


def not_finite(outputs: Sequence[torch.Tensor]) -> tuple[bool, bool]:
    """Whether an output holds NaN, and whether one holds infinity."""
    floats = [valued(t) for t in outputs if t.is_floating_point()]
    return any(bool(torch.isnan(t).any()) for t in floats), any(bool(torch.isinf(t).any()) for t in floats)


def _bearable(drawn: Round, usual: Round) -> bool:
    """Whether the reference is as finite as it usually is, and tf32 as exact as it must be."""
    return bearable(not_finite(drawn.expected.reference), drawn.errors, not_finite(usual.expected.reference), usual.errors)


def bearable(
    found: tuple[bool, bool], errors: Sequence[OwnError], usually: tuple[bool, bool], usual_errors: Sequence[OwnError]
) -> bool:
    """The same of what `not_finite` and `own_error` gave for other inputs, and give usually. Other draws are worse by chance, so
    that tf32 has twice the room here."""
    finite = all(now <= before for now, before in zip(found, usually, strict=True))
    return finite and all(now.with_cores(2.0).blurred <= before.blurred for now, before in zip(errors, usual_errors, strict=True))


def resolved(errors: Sequence[OwnError]) -> bool:
    """Whether float32 itself is as exact as ever at inputs that lead out of half precision's range."""
    return all(REFERENCE_FACTOR * error.norm < FLOOR[torch.float32] for error in errors)


def _harder(reference: Reference, usual: Round, terms: Terms, seeds: random.Random) -> Round:
    """A round at other weights and inputs, as hard as is bearable."""
    shifted = any(shifts(value) for value in tensors_of(usual.inputs))
    whole = any(not output.is_floating_point() for output in usual.expected.reference)
    for stress, perturbed in [(Stress.SHIFTED, True)] * shifted + [(Stress.SCALED, True), (Stress.NONE, True)]:
        try:
            with Conversions() if whole else nullcontext(Conversions()) as seen:
                drawn = Construction(reference, terms, seeds, perturbed=perturbed).round(stress)
        except Exception:  # a reference may refuse such inputs in its own way
            continue
        if _bearable(drawn, usual) and (stress is Stress.NONE or not seen.overflow):
            return drawn
    return Construction(reference, terms, seeds).round(Stress.NONE)


def _out_of_range(reference: Reference, usual: Round, terms: Terms, seeds: random.Random) -> list[Round]:
    """A round that half precision does not survive and tf32 does, if there is one; else none."""
    made = Construction(reference, replace(terms, before=Before()), seeds)
    balance = balance_of(made.model, usual.inputs, usual.forward_seed)
    if balance is None:
        return []
    try:
        made = Construction(reference, terms, seeds, balance=balance)
        drawn = made.round(Stress.NONE)
        exact = partial(exact_of_copy, made.exact_model, drawn.inputs, drawn.forward_seed)
        wrong = halved(exact, drawn.expected.reference, drawn.expected.allowed)
    except Exception:  # as above
        return []
    return [drawn] if wrong and resolved(drawn.errors) and _bearable(drawn, usual) else []


def draw_rounds(
    reference: Reference, precision: Precision, key: str, *, other: bool, before: Before = Before(), replaced: Sequence[str] = ()
) -> list[Round]:
    """The rounds of one candidate, whose seeds come from its key. `other`: with one in the other of train and eval mode;
    `replaced`: attributes that forward replaces for its next call. Raises BrokenReference."""
    seeds, terms = draws(key, "rounds"), Terms(precision, before, tuple(replaced))
    usual = Construction(reference, terms, seeds)
    found = [usual.round(Stress.NONE), usual.round(Stress.NONE)]
    found.append(_harder(reference, found[0], terms, seeds))
    if other:
        found.append(Construction(reference, terms, seeds, other=True, perturbed=True).round(Stress.NONE))
    return found + (_out_of_range(reference, found[0], terms, seeds) if found[0].products else [])
