"""The rounds of a problem that the CPU path judges: seeds, weights, inputs, and what the reference gives for them.

0  as the problem is written
1  the same module called again, on other inputs
2  another module, its parameters at other values; inputs scaled, and where they are never negative or about zero shifted
   and uneven, with rows that are tiny or below zero; inputs of one value at others
3  the other of train and eval mode, where that differs; parameters at other values
4  operands of products out of half precision's range, where a reference of float32 multiplies inputs: tf32 keeps that range
5  parameters at other values and usual inputs, where the inputs of round 2 hide a constant, or may hide what becomes of inputs
   that never vary
6  numbers that an operator is for whose effect no draw shows, such as those above a limit of 200
7  a few weights far larger than the others, where an output has half precision: 8 bits with a scale are as exact otherwise

Before all these stands a round with other inputs where an output is one number in round 0 and 1, see `inputs/planting.py`.

A round in which tf32 itself is wrong says nothing of candidates that may use it: then a milder one is drawn. So it is with one in
which the reference does not end (`references/ending.py`). `too_hard.py` has the rules.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cache, partial

from rlkernel.evaluator.draws import SEED_BITS, draws
from rlkernel.evaluator.judging.construction import Construction, Round
from rlkernel.evaluator.judging.errors.conversions import Conversions
from rlkernel.evaluator.judging.errors.own_error import undecided
from rlkernel.evaluator.judging.errors.tensor_cores import balance_of, halved
from rlkernel.evaluator.judging.errors.wavering import wavers
from rlkernel.evaluator.judging.inputs.planting import idle, only_values, planted, tells
from rlkernel.evaluator.judging.inputs.shown import must_be_exact
from rlkernel.evaluator.judging.inputs.stress import stresses
from rlkernel.evaluator.judging.references.borne import Keeping, not_borne
from rlkernel.evaluator.judging.references.hidden import hidden
from rlkernel.evaluator.judging.references.outliers import NOTE as OUTLIERS
from rlkernel.evaluator.judging.references.outliers import WithOutliers, weights
from rlkernel.evaluator.judging.references.plan import AT_ONCE, Before, Plan, SeededReference, Terms
from rlkernel.evaluator.judging.references.reference_calls import constants
from rlkernel.evaluator.judging.references.related import drawn_weights
from rlkernel.evaluator.judging.too_hard import as_exact, as_sure, as_tight, bearable, hardest, not_finite, resolved
from rlkernel.evaluator.messages.judgement import NumbersOfArguments, Planting, Stress
from rlkernel.evaluator.program.codes import HALF
from rlkernel.reference import Reference
from rlkernel.types import Precision


def _bearable(drawn: Round, usual: Round) -> bool:
    """Whether the reference is as finite as it usually is, tf32 as exact as it must be, and it is as sure of what it gives as
    usually."""
    if not as_sure(_undecided(drawn), _undecided(usual)):
        return False
    return bearable(not_finite(drawn.expected.reference), drawn.errors, not_finite(usual.expected.reference), usual.errors)


def _undecided(drawn: Round) -> float:
    return undecided(drawn.expected.reference, drawn.expected.exact)


def _as_exact(drawn: Round, usual: Round) -> bool:
    """Whether the reference errs under stress by no more than lets two right kernels agree, and jumps as little as usually."""
    return not drawn.own_measures - usual.own_measures and as_exact(drawn.errors, usual.errors)


def _as_tight(drawn: Round, usual: Round) -> bool:
    """Whether the reference errs by little more than usually, see `too_hard.as_tight`."""
    return as_tight(drawn.errors, usual.errors, [output.dtype for output in drawn.expected.reference])


def _harder(
    reference: Reference, usual: Round, terms: Terms, seeds: random.Random, usually: Callable[[], float]
) -> tuple[Round, SeededReference]:  # fmt: skip
    """A round at other weights and inputs, as hard as is bearable, and the reference whose constants that are not bearable keep
    their values. usually: see `_decided`."""
    tried = hardest(stresses(usual.inputs))
    kept: SeededReference = reference

    def hardest_of(some: SeededReference) -> Round | None:
        """The hardest round that this reference bears, and in which roundings decide no more than usually."""
        for stress in tried:
            found = _perturbed(some, usual, terms, seeds, stress)
            if found is None:
                continue
            if stress is Stress.NONE or _decided(found, terms, usually):
                return found
        return None

    drawn = hardest_of(reference)
    if drawn is None:

        def bears(changed: tuple[str, ...]) -> bool:
            others = Keeping(reference, tuple(name for name in names if name not in changed))
            return _perturbed(others, usual, terms, seeds, Stress.NONE) is not None

        model = reference.model(seeds.getrandbits(SEED_BITS))
        same = constants(model, reference.fixed)
        names = (*same, *drawn_weights(model, reference.fixed, same))
        del model, same
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
    reference: Reference, usual: Round, terms: Terms, seeds: random.Random,
    *, kept: SeededReference, unseen: set[str], stress: Stress, usually: Callable[[], float],
) -> Round | None:  # fmt: skip
    """A round at usual inputs and other constants, but for those that are `kept`, if it is bearable: one in which inputs that
    never vary do, or one in which some of the constants show that were `unseen` so far, which it takes from these."""
    del reference
    drawn = _perturbed(kept, usual, terms, seeds, stress) if unseen or stress is Stress.VARIED else None
    if drawn is None or not _decided(drawn, terms, usually):
        return None
    shown = unseen - _hidden(kept, drawn, terms) if unseen else set[str]()
    unseen -= shown
    return drawn if stress is Stress.VARIED or shown else None


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


def _decided(drawn: Round, terms: Terms, usually: Callable[[], float]) -> bool:
    """Whether roundings decide no more whole numbers in a round than `usually`, which is asked for where they decide some."""
    return not (unsure := _wavers(drawn, terms)) or as_sure(unsure, usually())


def _wavers(drawn: Round, terms: Terms) -> float:
    """The share of whole numbers of the reference in a round that roundings decide."""
    if drawn.expected.roundings is None:
        return 0.0
    with terms.usual.bounded():
        return wavers(drawn.expected.roundings.turns(), drawn.expected.reference)


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
    return drawn if _bearable(drawn, usual) and (not must_be_exact(plant) or _as_exact(drawn, usual)) else None


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
    usually = cache(partial(_wavers, usual, terms))
    harder = [_harder(reference, usual, terms, seeds, usually)]
    kept, unseen = harder[0][1], set(_hidden(*harder[0][::-1], terms))
    ways = (*(Stress.VARIED,) * harder[0][0].enlarged, Stress.NONE)
    yield (harder.pop()[0],)  # no name here holds the round while it is judged
    if other:
        yield (Construction(kept, terms, seeds, other=True, perturbed=True).round(Stress.NONE),)
    milder = tuple(partial(_milder, kept=kept, unseen=unseen, stress=stress, usually=usually) for stress in ways)
    del kept
    shows = tuple(partial(_shown, plant=plant) for plant in plants)
    others: tuple[Callable[..., Round | None], ...] = (*milder, *shows, *(_out_of_range,) * usual.products, _with_outliers)
    for draw in others:
        drawn = draw(reference, usual, terms, seeds)
        if drawn is not None:
            rounds = [drawn]
            del drawn
            yield (rounds.pop(),)
