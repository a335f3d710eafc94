"""The rounds of a problem that the CPU path judges: seeds, weights, inputs, and what the reference gives for them.

0  as the problem is written
1  the same module called again, on other inputs
2  another module, its constant parameters at other values; inputs scaled, and shifted where they were never negative
3  the other of train and eval mode, where that differs; constant parameters at other values
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from rlkernel.evaluator.judging.comparison import bits
from rlkernel.evaluator.judging.reference_calls import (
    STRESS,
    call,
    constants,
    draw_seed,
    exact_outputs,
    mapped,
    nudged,
    one_sided,
    perturb,
    state_of,
    stressed,
    tensors_of,
)
from rlkernel.evaluator.judging.rounds import Expected, fates
from rlkernel.evaluator.judging.tolerance import beside as more_exact
from rlkernel.evaluator.judging.tolerance import own_error, tolerance
from rlkernel.evaluator.messages.judgement import Stress
from rlkernel.evaluator.program.carried import carry
from rlkernel.evaluator.program.tensors import flatten
from rlkernel.reference import Reference


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


class Construction:
    """One module of the reference, and the same in float64; called any number of times."""

    def __init__(
        self, reference: Reference, carried: Sequence[str], *, other: bool, perturbed: bool, tf32: bool
    ) -> None:  # fmt: skip
        self.reference, self.other, self.perturbed, self.tf32 = reference, other, perturbed, tf32
        self.init_seed = draw_seed()
        self.model = reference.model(self.init_seed)
        carry(self.model, carried)
        if other:
            self.model.train(not self.model.training)
        if perturbed:
            perturb(self.model, self.init_seed, constants(self.model))
        self.exact_model = copy.deepcopy(self.model)
        self.calls = 0

    def round(self, stress: Stress) -> Round:
        """Draw inputs and call the reference. Raises what the reference raises."""
        forward_seed = draw_seed()
        inputs = stressed(self.reference.inputs(draw_seed()), stress)
        state = {name: tensor.clone() for name, tensor in state_of(self.model).items()}
        mine = mapped(inputs, lambda tensor: tensor.clone(memory_format=torch.preserve_format))
        found: list[torch.Tensor] = []
        structure = flatten(call(self.model, mine, forward_seed), found)
        changed = [n for n, t in state_of(self.model).items() if t.is_floating_point() and not _equal(t, state[n])]
        exact = exact_outputs(self.exact_model, inputs, forward_seed) or found
        moved = None if changed else exact_outputs(self.exact_model, nudged(inputs), forward_seed)
        errors = [own_error(f, e, m) for f, e, m in zip(found, exact, moved or exact, strict=True)]
        beside = {
            i: (e, more_exact(f.dtype, error, tf32=self.tf32))
            for i, (f, e, error) in enumerate(zip(found, exact, errors, strict=True))
            if e.shape == f.shape and not error.steady and bool(torch.isfinite(e).all())
        }
        exact = [e if e.shape == f.shape and error.steady else f for f, e, error in zip(found, exact, errors, strict=True)]
        errors = [own_error(f, e, m) for f, e, m in zip(found, exact, moved or exact, strict=True)]
        after, before = tensors_of(mine), tensors_of(inputs)
        expected = Expected(
            structure, tuple(found), tuple(exact), tuple(after), tuple(before), fates(after, before, found),
            tuple(tolerance(f.dtype, error, tf32=self.tf32) for f, error in zip(found, errors, strict=True)),
            beside=beside, state=self._changed(changed), other=self.other, note=self._note(stress),
        )  # fmt: skip
        self.calls += 1
        return Round(self.init_seed, forward_seed, self.calls > 1, state, inputs, expected)

    def _changed(self, names: list[str]) -> dict[str, Any]:
        """The state that forward has changed, and what is allowed of it."""
        mine, exact = state_of(self.model), state_of(self.exact_model)
        found = {}
        for name in names:
            allowed = tolerance(mine[name].dtype, own_error(mine[name], exact[name]), tf32=self.tf32)
            found[name] = (mine[name].clone(), allowed)
        return found

    def _note(self, stress: Stress) -> str:
        notes = [f"inputs scaled by {STRESS:g}"] if stress is Stress.SCALED else []
        notes += [f"inputs scaled by {STRESS:g} and centred"] if stress is Stress.SHIFTED else []
        notes += ["constant parameters at other values"] if self.perturbed else []
        notes += ["in a second call"] if self.calls else []
        return f" ({', '.join(notes)})" if notes else ""


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    return torch.equal(bits(one), bits(other))


def _not_finite(expected: Expected) -> tuple[bool, bool]:
    """Whether an output holds NaN, and whether one holds infinity."""
    floats = [t for t in expected.reference if t.is_floating_point()]
    return any(bool(torch.isnan(t).any()) for t in floats), any(bool(torch.isinf(t).any()) for t in floats)


def _harder(reference: Reference, carried: Sequence[str], usual: Round, *, tf32: bool) -> Round:
    """A round at other weights and inputs, as hard as leaves the reference as finite as it usually is."""
    shifted = any(one_sided(value) for value in usual.inputs)
    for stress, perturbed in [(Stress.SHIFTED, True)] * shifted + [(Stress.SCALED, True), (Stress.NONE, True)]:
        try:
            drawn = Construction(reference, carried, other=False, perturbed=perturbed, tf32=tf32).round(stress)
        except Exception:  # a reference may refuse such inputs in its own way
            continue
        if all(now <= before for now, before in zip(_not_finite(drawn.expected), _not_finite(usual.expected), strict=True)):
            return drawn
    return Construction(reference, carried, other=False, perturbed=False, tf32=tf32).round(Stress.NONE)


def draw_rounds(reference: Reference, *, other: bool, tf32: bool, carried: Sequence[str] = ()) -> list[Round]:
    """The rounds of one candidate. `other`: with one in the other of train and eval mode. `carried`: attributes that forward
    replaces for its next call. Raises BrokenReference."""
    usual = Construction(reference, carried, other=False, perturbed=False, tf32=tf32)
    found = [usual.round(Stress.NONE), usual.round(Stress.NONE)]
    found.append(_harder(reference, carried, found[0], tf32=tf32))
    if other:
        found.append(Construction(reference, carried, other=True, perturbed=True, tf32=tf32).round(Stress.NONE))
    return found
