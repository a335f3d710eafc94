"""What a reference gives at each kind of round: its own error, what tf32 makes of it, and which rounds it bears.

Everything here is measured once per problem and card, before the first candidate.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from rlkernel.evaluator.gpu import showing
from rlkernel.evaluator.gpu.exact import exact_outputs, measured
from rlkernel.evaluator.gpu.fused_errors import passes
from rlkernel.evaluator.gpu.kinds import USUAL, Kind
from rlkernel.evaluator.judging.errors.comparison import bits
from rlkernel.evaluator.judging.errors.own_error import ELEMENT_CAP, OwnError, own_error, steady, undecided
from rlkernel.evaluator.judging.errors.tensor_cores import balance_of, halved
from rlkernel.evaluator.judging.errors.tolerance import ROUNDED, tolerance, widest
from rlkernel.evaluator.judging.errors.wavering import OtherRoundings, wavers
from rlkernel.evaluator.judging.inputs.planting import only_values, planted, tells
from rlkernel.evaluator.judging.inputs.shown import must_be_exact
from rlkernel.evaluator.judging.inputs.stress import stresses
from rlkernel.evaluator.judging.references.flags import judging
from rlkernel.evaluator.judging.references.outliers import weights
from rlkernel.evaluator.judging.references.reference_calls import call, counts_as_state, draw_seed, state_of, tensors_of
from rlkernel.evaluator.judging.rounds import fates
from rlkernel.evaluator.judging.too_hard import as_exact, as_sure, as_tight, bearable, hardest, not_finite, resolved
from rlkernel.evaluator.messages.judgement import NOWHERE, Balance, InputFate, Places, Planting, Shown, Stress, Tolerance
from rlkernel.evaluator.program.codes import HALF
from rlkernel.types import Precision

if TYPE_CHECKING:
    from rlkernel.evaluator.gpu.problem import GpuProblem


CHANCE = 1.25
"""How much more tf32 may make of another draw than of the usual one by chance: one draw decides for all candidates."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the reference gave at one kind of round."""

    dtypes: tuple[torch.dtype, ...]
    """The dtype of each output."""
    errors: tuple[OwnError, ...]
    """The reference's own in each output."""
    state: dict[str, tuple[torch.dtype, OwnError]]
    """The same of the parameters and buffers that forward changes, with their dtypes."""
    infinite: tuple[bool, bool, bool]
    """What `not_finite` tells of the outputs."""
    fates: tuple[InputFate, ...]
    products: bool
    """Whether a candidate may compute products of the reference in tf32."""
    blurred: tuple[bool, ...]
    """Whether tf32 makes more of each output than it may, and behind these, of each parameter and buffer that forward changes.
    It is told also where `errors` says nothing, because the reference is its own measure."""
    halved: bool
    """Whether half precision makes an output wrong; only known of inputs out of its range."""
    only: tuple[float | None, ...] = ()
    """The one number that each output holds; None for one that holds several."""
    scalings: tuple[Stress, ...] = ()
    """What can be done to the inputs of the problem as it is written, the hardest first; only known there."""
    jumps: tuple[bool, ...] = ()
    """Whether each output is its own measure, because float64 gives something else."""
    undecided: float = 0.0
    """The share of whole numbers that are others in float64, or with other roundings, in the output that has most of them."""

    @property
    def blurs(self) -> bool:
        """Whether tf32 makes too much of anything that is compared."""
        return any(self.blurred)

    @property
    def without_noise(self) -> Seen:
        """The same for rounds at other constants, where what was noise may have a value."""
        state = {name: (dtype, replace(own, noise=0.0)) for name, (dtype, own) in self.state.items()}
        return replace(self, errors=tuple(replace(own, noise=0.0) for own in self.errors), state=state)

    def bearable(self, usual: Seen) -> bool:
        """Whether the reference is as finite as it usually is, tf32 as exact as it must be, and it is as sure of what it gives as
        usually."""
        if not as_sure(self.undecided, usual.undecided):
            return False
        return bearable(self.infinite, self.errors, usual.infinite, usual.errors)

    def as_exact(self, usual: Seen) -> bool:
        """The same as `too_hard.as_exact`, and whether the reference jumps as little as usually."""
        more = any(now and not before for now, before in zip(self.jumps, usual.jumps, strict=True))
        return not more and as_exact(self.errors, usual.errors)

    def as_tight(self, usual: Seen) -> bool:
        """Whether the reference errs by little more than it usually does, see `too_hard.as_tight`."""
        return as_tight(self.errors, [error.with_cores(CHANCE) for error in usual.errors], self.dtypes)


def _ways(stresses: Sequence[Stress], same: Places) -> list[tuple[Stress, Places]]:
    """What is tried, the hardest first: each stress with others in place of what is always the `same`, and then without."""
    tried = [stress for stress in stresses if stress is not Stress.NONE]
    others = [(stress, same) for stress in (*tried, *(Stress.VARIED,) * (Stress.VARIED not in tried))] if same != NOWHERE else []
    return [*others, *((stress, NOWHERE) for stress in (*tried, Stress.NONE))]


def allowed(dtype: torch.dtype, own: OwnError, precision: Precision) -> Tolerance:
    """The candidate is compared with the reference, not with the exact result: both may err."""
    limit = tolerance(dtype, own, precision)
    return replace(limit, norm=limit.norm + own.norm, element=limit.element + min(own.element, limit.element))


def _timed(limit: Tolerance, own: OwnError, *, blurred: bool) -> Tolerance:
    """`limit` and what tf32 makes of the reference, which is `own`. Where it makes something of it, and that is too much for a
    judgement, only what is another answer altogether is found in a timed call: two computations in tf32 differ there by more than
    either errs."""
    if blurred and own.norm > 0.0:
        return replace(limit, norm=limit.norm + 2.0 * min(own.norm, ROUNDED), element=math.inf)
    found = steady(own)
    element = max(limit.element, min(ELEMENT_CAP, limit.element + found.element))
    return replace(limit, norm=limit.norm + found.norm, element=element)


def copied_state(model: nn.Module) -> dict[str, torch.Tensor]:
    """Copies of the parameters and buffers whose change counts."""
    return {name: tensor.clone() for name, tensor in state_of(model).items() if counts_as_state(name, tensor)}


def changed_state(before: Mapping[str, torch.Tensor], model: nn.Module) -> dict[str, torch.Tensor]:
    """The parameters and buffers of `model` that are not what they were `before`. Waits for the GPU."""
    now = {name: tensor for name, tensor in state_of(model).items() if name in before}
    return {name: tensor for name, tensor in now.items() if not torch.equal(bits(tensor), bits(before[name]))}


class Measuring:
    """Calls one problem's reference with one precision."""

    def __init__(self, problem: GpuProblem, precision: Precision) -> None:
        self.problem, self.precision = problem, precision

    def see(self, kind: Kind) -> Seen:
        """The reference at this kind of round. Raises what the reference raises."""
        problem, precision, seed, init_seed, forward_seed = self.problem, self.precision, draw_seed(), draw_seed(), draw_seed()
        called, inputs = problem.model_for(kind, init_seed), problem.inputs(seed, kind)
        before = copied_state(called)  # another module may hold other numbers, such as a buffer that nobody has filled
        with judging(precision):
            outputs = tensors_of(call(called, inputs, forward_seed))
            state = changed_state(before, called)
            fresh = problem.inputs(seed, kind)
            only = only_values(outputs)
            what_happens = fates(tensors_of(inputs), tensors_of(fresh), outputs)
            scalings = stresses(fresh) if kind == USUAL else ()
            ready = [fresh]  # for the first who draws
            del inputs, fresh, called, before
            model = problem.model_for(kind, init_seed)  # as it was before the call
            found = [*outputs, *state.values()]

        def draw() -> list[Any]:
            return ready.pop() if ready else problem.inputs(seed, kind)

        gaps = kind.balance is None  # see `judging.drawing`
        own = measured(
            model, draw, forward_seed, found, tuple(state), precision, shown=kind.shown, gaps=gaps, passes=passes
        )  # fmt: skip
        errors, products = own.errors, own.cores and any(o.dtype is torch.float32 for o in outputs)
        unsure = undecided(outputs, own.exact[: len(outputs)])
        if not unsure and (kind == USUAL or kind.stress is not Stress.NONE):
            with judging(precision):
                roundings = OtherRoundings(partial(problem.model_for, kind, init_seed), draw, forward_seed)
                unsure = wavers(roundings.turns(), outputs)
        del own  # what float64 gave is large
        wrong = False
        if products and kind.balance is not None:
            limits = [tolerance(o.dtype, OwnError(), precision) for o in outputs]
            with judging(precision):
                wrong = halved(partial(exact_outputs, model, draw, forward_seed, outputs), outputs, limits)
        blurred = tuple(error.blurred for error in errors)
        jumps = tuple(not error.steady for error in errors[: len(outputs)])
        errors = [steady(error) for error in errors]
        of_state = zip([tensor.dtype for tensor in state.values()], errors[len(outputs) :], strict=True)
        dtypes, changes = tuple(o.dtype for o in outputs), dict(zip(state, of_state, strict=True))
        of_outputs = tuple(errors[: len(outputs)])
        return Seen(
            dtypes, of_outputs, changes, not_finite(outputs), what_happens, products, blurred, wrong, only, scalings, jumps,
            unsure,
        )  # fmt: skip

    def limits(self, seen: Seen) -> tuple[Tolerance, ...]:
        """What is allowed of each output in a round of this kind."""
        return tuple(allowed(dtype, own, self.precision) for dtype, own in zip(seen.dtypes, seen.errors, strict=True))

    def state_limits(self, seen: Mapping[str, Seen], further: Mapping[str, Seen]) -> dict[str, dict[str, Tolerance]]:
        """What is allowed of the state that forward changes in each kind of round: as much as at the worst of them, and noise
        where it was seen in that kind. What has no float64 gets the floor. `further`: rounds that show what no draw does, whose
        errors excuse no other round's."""
        worst: dict[str, Tolerance] = {}
        for name, (dtype, own) in [row for one in seen.values() for row in one.without_noise.state.items()]:
            worst[name] = widest(allowed(dtype, own, self.precision), worst.get(name, Tolerance(0.0, 0.0)))

        def wider(one: Seen, *, noise: bool) -> dict[str, Tolerance]:
            rows = [(n, allowed(d, own, self.precision)) for n, (d, own) in one.state.items() if own.noise or not noise]
            return worst | {name: widest(limit, worst.get(name, limit)) for name, limit in rows}

        usual = {kind: wider(one, noise=True) for kind, one in seen.items()}
        return usual | {kind: wider(one, noise=False) for kind, one in further.items()}

    def timed_limits(self, usual: Seen, output: list[torch.Tensor], init_seed: int, seed: int) -> tuple[Tolerance, ...]:
        """What is allowed from a reference that is timed as PyTorch ships it: what its own tf32 makes of it comes on top. It gave
        `output` for the inputs of `seed` and forward seed 0."""
        limits = self.limits(usual)
        if not usual.products:
            return limits
        with judging(self.precision):
            exact = tensors_of(call(self.problem.model(init_seed), self.problem.inputs(seed), 0))
        errors = [own_error(o, e, passes=passes) for o, e in zip(output, exact, strict=True)]
        rows = zip(limits, errors, usual.blurred, strict=False)  # state is not timed
        return tuple(_timed(limit, own, blurred=blurred) for limit, own, blurred in rows)

    def hardest(self, usual: Seen, *, idle: tuple[int, ...] = (), same: Places = NOWHERE) -> tuple[Kind, Seen]:
        """The hardest round that the reference bears, and what it gives there; if outputs are `idle`, one in which some of these
        are not is looked for first. `same`: what inputs get that are always the same."""
        if idle and planted(drawn := self.problem.inputs(draw_seed()), 0) is drawn:
            idle = ()
        for plants in (True, False) if idle else (False,):
            for stress, moved in _ways(hardest(usual.scalings), same):
                there = showing.found(partial(self.problem.places, stress, moved), None)
                if there is None:
                    continue
                kind = Kind(stress=stress, perturbed=True, plants=plants, places=there)
                found = self._tried(kind)
                if found is None or not found.bearable(usual) or (plants and not tells(idle, usual.only, found.only)):
                    continue
                if stress is not Stress.NONE and not found.as_exact(usual):
                    continue
                if stress is not Stress.EXTREME or found.as_tight(usual):
                    return kind, found
        return Kind(), usual

    def shown(self, usual: Seen, looked_for: Shown, until: float) -> dict[Planting, Seen]:
        """What the reference gives in the rounds that show something, of those that it bears. None is tried after `until`, on
        the monotonic clock."""
        found = dict[Planting, Seen]()
        for one in looked_for:
            seen = self._tried(Kind(shown=one)) if time.monotonic() < until else None
            if seen is not None and seen.bearable(usual) and (not must_be_exact(one) or seen.as_exact(usual)):
                found[one] = seen
        return found

    def with_outliers(self, usual: Seen) -> Seen | None:
        """What the reference gives with a few large weights; None where no output has half precision, where there are no such
        weights, or that is not bearable."""
        if not any(dtype in HALF for dtype in usual.dtypes) or not weights(self.problem.model(0), self.problem.reference.fixed):
            return None
        found = self._tried(Kind(outliers=True))
        there = found is not None and found.bearable(usual) and found.as_exact(usual) and found.as_tight(usual)
        return found if there else None

    def out_of_range(self, usual: Seen) -> tuple[Balance | None, Seen]:
        """What leads the inputs where half precision is wrong and tf32 is not, if anything does, and what the reference gives."""
        seed = draw_seed()
        balance = balance_of(self.problem.model(seed), self.problem.inputs(seed), seed) if usual.products else None
        found = None if balance is None else self._tried(Kind(balance=balance))
        if found is not None and found.halved and resolved(found.errors) and found.bearable(usual):
            return balance, found
        return None, usual

    def _tried(self, kind: Kind) -> Seen | None:
        """The reference at this kind of round; None where it refuses that."""
        return showing.found(partial(self.see, kind), None)
