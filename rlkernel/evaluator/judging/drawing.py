"""The rounds of a problem that the CPU path judges: seeds, weights, inputs, and what the reference gives for them.

0  as the problem is written
1  the same module called again, on other inputs
2  another module, its constant parameters at other values; inputs scaled, and where they are never negative or about zero shifted
   and uneven, with rows that are tiny or below zero; inputs of one value at others
3  the other of train and eval mode, where that differs; constant parameters at other values
4  operands of products out of half precision's range, where a reference of float32 multiplies inputs: tf32 keeps that range
5  constant parameters at other values and usual inputs, where the inputs of round 2 hide a constant
6  numbers that an operator is for whose effect no draw shows, such as those above a limit of 200
7  a few weights far larger than the others, where an output has half precision: 8 bits with a scale are as exact otherwise

Before all these stands a round with other inputs where an output is one number in round 0 and 1, see `inputs/planting.py`.

A round in which tf32 itself is wrong says nothing of candidates that may use it: then a milder one is drawn. So it is with one in
which the reference does not end (`references/ending.py`).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cache, partial

import torch

from rlkernel.evaluator.draws import SEED_BITS, draws
from rlkernel.evaluator.judging.construction import Construction, Round
from rlkernel.evaluator.judging.errors.conversions import Conversions
from rlkernel.evaluator.judging.errors.own_error import REFERENCE_FACTOR, OwnError, undecided
from rlkernel.evaluator.judging.errors.tensor_cores import balance_of, halved
from rlkernel.evaluator.judging.errors.tolerance import FLOOR
from rlkernel.evaluator.judging.errors.wavering import wavers
from rlkernel.evaluator.judging.inputs.planting import idle, only_values, planted, tells
from rlkernel.evaluator.judging.inputs.stress import stresses
from rlkernel.evaluator.judging.references.borne import Keeping, not_borne
from rlkernel.evaluator.judging.references.hidden import hidden
from rlkernel.evaluator.judging.references.outliers import NOTE as OUTLIERS
from rlkernel.evaluator.judging.references.outliers import WithOutliers, weights
from rlkernel.evaluator.judging.references.plan import AT_ONCE, Before, Plan, SeededReference, Terms
from rlkernel.evaluator.judging.references.reference_calls import constants
from rlkernel.evaluator.messages.judgement import NumbersOfArguments, Planting, Stress
from rlkernel.evaluator.program.codes import valued
from rlkernel.reference import Reference
from rlkernel.types import Precision

HALF = (torch.float16, torch.bfloat16)
MOST = 2.0**64
"""What float32 has a square of: what recurs and is not damped grows beyond it, long before it is infinite."""
LOOSE = 0.1
"""What may be allowed of an output's norm because its reference errs; above it a round tells little."""
SURER = 4.0
"""How many times as many whole numbers may be decided by roundings as usually, by chance."""
TIGHT = 0.25
"""The share of a floor up to which the reference's own error counts as little."""


def not_finite(outputs: Sequence[torch.Tensor]) -> tuple[bool, bool, bool]:
    """Whether an output holds NaN, whether one holds infinity, and whether one holds more than `MOST`, as a mask does that fills
    with the lowest number there is."""
    floats = [valued(t) for t in outputs if t.is_floating_point()]
    sizes = [float(t.abs().nan_to_num_(0.0, math.inf).amax()) for t in floats if t.numel()]
    largest = max(sizes, default=0.0)
    return any(bool(torch.isnan(t).any()) for t in floats), math.isinf(largest), largest > MOST


def _bearable(drawn: Round, usual: Round) -> bool:
    """Whether the reference is as finite as it usually is, tf32 as exact as it must be, and it is as sure of what it gives as
    usually."""
    if not as_sure(_undecided(drawn), _undecided(usual)):
        return False
    return bearable(not_finite(drawn.expected.reference), drawn.errors, not_finite(usual.expected.reference), usual.errors)


def _undecided(drawn: Round) -> float:
    return undecided(drawn.expected.reference, drawn.expected.exact)


def bearable(
    found: tuple[bool, ...], errors: Sequence[OwnError], usually: tuple[bool, ...], usual_errors: Sequence[OwnError]
) -> bool:
    """The same of what `not_finite` and `own_error` gave for other inputs, and give usually. Other draws are worse by chance, so
    that tf32 has twice the room here."""
    finite = all(now <= before for now, before in zip(found, usually, strict=True))
    return finite and all(now.with_cores(2.0).blurred <= before.blurred for now, before in zip(errors, usual_errors, strict=True))


def _as_exact(drawn: Round, usual: Round) -> bool:
    """Whether the reference errs under stress by no more than lets two right kernels agree, and jumps as little as usually."""
    return not drawn.own_measures - usual.own_measures and as_exact(drawn.errors, usual.errors)


def as_exact(errors: Sequence[OwnError], usual_errors: Sequence[OwnError]) -> bool:
    """Whether no output errs by so much more than usually that two right kernels may have nothing in common: what recurs grows
    with its inputs, and so does what is rounded. It is asked under stress alone. Without stress there is nothing milder to try,
    and usual errors say little: a branch behind a gate of zeros errs by nothing until the gate has another value."""
    pairs = zip(errors, usual_errors, strict=True)
    return not any(REFERENCE_FACTOR * now.norm > LOOSE and now.norm > 2.0 * usually.norm for now, usually in pairs)


def as_sure(now: float, usually: float) -> bool:
    """Whether about as many whole numbers are decided by roundings as usually, given the shares that are. At full shape there may
    be one among thousands in any draw.

    >>> as_sure(0.0, 0.0), as_sure(1 / 4096, 0.0), as_sure(2 / 4096, 1 / 4096), as_sure(0.2, 1 / 4096)
    (True, False, True, False)
    """
    return now <= SURER * usually


def _as_tight(drawn: Round, usual: Round) -> bool:
    """Whether the reference errs by little more than usually, so that bounds are hardly wider: rows at the edge of what it bears
    may not excuse the others, and an honest kernel, which may take another way, may err by more than the reference. Example: the
    variance in one pass of what a sigmoid makes of tiny rows, 0.5 and a little. Tf32 may err by no more than usually: a softmax
    of scores far below zero amplifies what it rounds, and one such error says little of another."""
    return as_tight(drawn.errors, usual.errors, [output.dtype for output in drawn.expected.reference])


def as_tight(errors: Sequence[OwnError], usual_errors: Sequence[OwnError], dtypes: Sequence[torch.dtype]) -> bool:
    """The same of what `own_error` gave for other inputs, and gives usually."""
    rows = zip(errors, usual_errors, dtypes, strict=True)
    floors = ((now, before, FLOOR.get(dtype, FLOOR[torch.float32])) for now, before, dtype in rows)
    return all(
        now.cores <= before.cores and REFERENCE_FACTOR * now.norm <= max(TIGHT * floor, 2.0 * REFERENCE_FACTOR * before.norm)
        for now, before, floor in floors
    )


def resolved(errors: Sequence[OwnError]) -> bool:
    """Whether float32 itself is as exact as ever at inputs that lead out of half precision's range."""
    return all(REFERENCE_FACTOR * error.norm < FLOOR[torch.float32] for error in errors)


def _harder(reference: Reference, usual: Round, terms: Terms, seeds: random.Random) -> tuple[Round, SeededReference]:
    """A round at other weights and inputs, as hard as is bearable, and the reference whose constants that are not bearable keep
    their values."""
    tried = _hardest(usual)
    kept: SeededReference = reference
    usually = cache(partial(_wavers, usual, terms))

    def hardest_of(some: SeededReference) -> Round | None:
        """The hardest round that this reference bears, and in which roundings decide no more than usually."""
        for stress in tried:
            found = _perturbed(some, usual, terms, seeds, stress)
            if found is None:
                continue
            if stress is Stress.NONE or not (unsure := _wavers(found, terms)) or as_sure(unsure, usually()):
                return found
        return None

    drawn = hardest_of(reference)
    if drawn is None:

        def bears(changed: tuple[str, ...]) -> bool:
            others = Keeping(reference, tuple(name for name in names if name not in changed))
            return _perturbed(others, usual, terms, seeds, Stress.NONE) is not None

        names = tuple(constants(reference.model(seeds.getrandbits(SEED_BITS)), reference.fixed))
        kept = Keeping(reference, not_borne(names, bears))
        drawn = hardest_of(kept)
    return drawn or Construction(reference, terms, seeds).round(Stress.NONE), kept


def _hidden(reference: SeededReference, drawn: Round, terms: Terms) -> frozenset[str]:
    """The constants whose other values a round hardly shows; none where calls come before it."""
    if drawn.first_inputs:
        return frozenset()
    plan = Plan(reference, terms, drawn.init_seed, False, [])
    try:
        with terms.usual.bounded():
            limits = [limit for _, limit in drawn.expected.made]
            return hidden(plan, drawn.inputs, drawn.forward_seed, drawn.expected.reference, limits)
    except Exception:  # a reference may refuse such inputs in its own way
        return frozenset()


def _milder(
    reference: Reference, usual: Round, terms: Terms, seeds: random.Random, *, kept: SeededReference, unseen: frozenset[str]
) -> Round | None:  # fmt: skip
    """A round at other constants, but for those that are `kept`, that shows some of those `unseen` under stress; None where it
    does not."""
    del reference
    drawn = _perturbed(kept, usual, terms, seeds, Stress.NONE)
    return drawn if drawn is not None and unseen - _hidden(kept, drawn, terms) else None


def _hardest(usual: Round) -> tuple[Stress, ...]:
    """What is tried, the hardest first."""
    return hardest(stresses(usual.inputs))


def hardest(found: Sequence[Stress]) -> tuple[Stress, ...]:
    """The same of what `stresses` has found, with rows at the edge, then with inputs that are less large, and without any stress
    at last."""
    less = (Stress.LESS, Stress.LEAST) if Stress.SCALED in found else ()
    return (*(Stress.EXTREME,) * (Stress.UNEVEN in found), *found, *less, Stress.NONE)


def _perturbed(reference: SeededReference, usual: Round, terms: Terms, seeds: random.Random, stress: Stress) -> Round | None:
    """A round at other weights and inputs; None where that is not bearable."""
    whole = any(not output.is_floating_point() for output in usual.expected.reference)
    try:
        with terms.usual.bounded(), Conversions() if whole else nullcontext(Conversions()) as seen:
            drawn = Construction(reference, terms, seeds, perturbed=True).round(stress)
    except Exception:  # a reference may refuse such inputs in its own way
        return None
    if not _bearable(drawn, usual) or (stress is not Stress.NONE and (seen.overflow or not _as_exact(drawn, usual))):
        return None
    return drawn if stress is not Stress.EXTREME or _as_tight(drawn, usual) else None


def _wavers(drawn: Round, terms: Terms) -> float:
    """The share of whole numbers of the reference in a round that roundings decide."""
    if drawn.expected.otherwise is None:
        return 0.0
    with terms.usual.bounded():
        return wavers(drawn.expected.otherwise(), drawn.expected.reference)


def _out_of_range(reference: Reference, usual: Round, terms: Terms, seeds: random.Random) -> Round | None:
    """A round that half precision does not survive and tf32 does; None if there is none."""
    model = Construction(reference, replace(terms, before=AT_ONCE), seeds).model
    balance = balance_of(model, usual.inputs, usual.forward_seed)
    del model
    if balance is None:
        return None
    try:
        with terms.usual.bounded():
            made = Construction(reference, terms, seeds, balance=balance)
            drawn = made.round(Stress.NONE)
            exact = partial(made.exactly, drawn.inputs, drawn.forward_seed)
            found, allowed = zip(*drawn.expected.made, strict=True)
            wrong = halved(exact, found, allowed)
    except Exception:  # as above
        return None
    return drawn if wrong and resolved(drawn.errors) and _bearable(drawn, usual) else None


def _with_outliers(reference: Reference, usual: Round, terms: Terms, seeds: random.Random) -> Round | None:
    """A round with a few large weights, for outputs of half precision; None where there are none, or that is not bearable."""
    if not any(output.dtype in HALF for output in usual.expected.reference) or not weights(
        reference.model(usual.init_seed), reference.fixed
    ):
        return None
    try:
        with terms.usual.bounded():
            drawn = Construction(WithOutliers(reference), terms, seeds).round(Stress.NONE)
    except Exception:  # as above
        return None
    if not (_bearable(drawn, usual) and _as_exact(drawn, usual) and _as_tight(drawn, usual)):
        return None
    return replace(drawn, expected=replace(drawn.expected, note=f" ({OUTLIERS})", ordinary=False))


def _twice(reference: Reference, terms: Terms, seeds: random.Random) -> tuple[Round, Round]:
    """Two rounds of one module, as the problem is written."""
    with terms.usual.measured():
        made = Construction(reference, terms, seeds)
    one = made.round(Stress.NONE)
    with terms.usual.measured():  # the first call in a process loads much of torch
        return one, made.round(Stress.NONE)


def _planted(reference: Reference, usual: tuple[Round, Round], terms: Terms, seeds: random.Random) -> Round | None:
    """A round in which the reference has something to do for all outputs, if it has not in the `usual` ones; None where it has,
    or where none is found."""
    given, again = (only_values(one.expected.reference) for one in usual)
    inputs = usual[0].inputs
    if not (still := idle(given, again)) or planted(inputs, 0) is inputs:
        return None
    try:
        with terms.usual.bounded():
            drawn = Construction(reference, terms, seeds, planting=NumbersOfArguments()).round(Stress.NONE)
    except Exception:  # a reference may refuse such inputs in its own way
        return None
    return drawn if _bearable(drawn, usual[0]) and tells(still, given, only_values(drawn.expected.reference)) else None


def _shown(reference: Reference, usual: Round, terms: Terms, seeds: random.Random, plant: Planting) -> Round | None:
    """A round with numbers among its inputs that an operator is for; None where that is not bearable."""
    try:
        with terms.usual.bounded():
            drawn = Construction(reference, terms, seeds, planting=plant).round(Stress.NONE)
    except Exception:  # as above
        return None
    return drawn if _bearable(drawn, usual) else None


def draw_rounds(
    reference: Reference,
    precision: Precision,
    key: str,
    *,
    other: bool,
    before: Before = AT_ONCE,
    replaced: Sequence[str] = (),
    plants: Sequence[Planting] = (),
) -> Iterator[tuple[Round, ...]]:
    """The rounds of one candidate, whose seeds come from its key: those of one module after the other. A module is made when its
    rounds are asked for, and gone when they are there, so that one at a time takes memory. `other`: with one in the other of
    train and eval mode; `replaced`: attributes that forward replaces for its next call; `plants`: what shows operators that no
    draw does, each in a round. Raises BrokenReference."""
    seeds, terms = draws(key, "rounds"), Terms(precision, before, tuple(replaced))
    first = _twice(reference, terms, seeds)
    usual = replace(first[0], state={})
    telling = _planted(reference, first, terms, seeds)
    if telling is not None:
        yield (telling,)  # first, because there it is found out which kernels matter
    yield first
    del first
    harder = [_harder(reference, usual, terms, seeds)]
    kept, unseen = harder[0][1], _hidden(*harder[0][::-1], terms)
    yield (harder.pop()[0],)  # no name here holds the round while it is judged
    if other:
        yield (Construction(kept, terms, seeds, other=True, perturbed=True).round(Stress.NONE),)
    milder = (partial(_milder, kept=kept, unseen=unseen),) * bool(unseen)
    del kept
    shows = tuple(partial(_shown, plant=plant) for plant in plants)
    others: tuple[Callable[..., Round | None], ...] = (*milder, *shows, *(_out_of_range,) * usual.products, _with_outliers)
    for draw in others:
        drawn = draw(reference, usual, terms, seeds)
        if drawn is not None:
            rounds = [drawn]
            del drawn
            yield (rounds.pop(),)
