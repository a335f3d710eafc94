"""Golden weights with their arithmetic, and properties of every registered correction."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms import CORRECTIONS
from algorithms.flat_groups import FlatGroups
from algorithms.mis import MIS
from algorithms.mrs import MRS
from algorithms.prs import PRS
from algorithms.ratios import Level
from algorithms.tis import TIS
from algorithms.veto import Scope, Veto
from algorithms.void_turns import VoidTurns
from rlkernel.errors import UsageError
from rlkernel.interfaces import Correction
from rlkernel.training.batch import keep
from rlkernel.types import Group, Status, Turn
from tests.algorithms.groups import group, keeps, sampled, turn


def weigh(correction: Correction, of: Group, ratios_KTL: torch.Tensor | None = None) -> torch.Tensor:
    """weights_KTL as the batch takes them: float64, 0 in the padding."""
    return torch.where(sampled(of), keeps(correction, of, ratios_KTL).double(), 0.0)


def test_registered_corrections_implement_the_protocol() -> None:
    assert all(isinstance(cls(), Correction) for cls in CORRECTIONS.values())
    # As the public code has them: only void turns leave the baseline.
    published = {"mrs": MRS, "prs": PRS, "void_turns": VoidTurns, "flat_groups": FlatGroups, "tis": TIS, "mis": MIS, "veto": Veto}
    assert CORRECTIONS.items() >= published.items()
    assert {name: cls().removes for name, cls in published.items() if cls is not VoidTurns} == {
        name: "loss" for name in published if name != "void_turns"
    }
    assert VoidTurns().removes == "return"


# One trajectory of two turns, 2 and 1 tokens, and one of one turn with 2 tokens; ratios are 2, 1/2 | 4 and 1, 2.
MISMATCHED = group([turn(n=2), turn()], [turn(n=2)])
LOG_RATIOS = torch.tensor([[[2.0, 0.5], [4.0, 99.0]], [[1.0, 2.0], [99.0, 99.0]]]).log()


@pytest.mark.parametrize(
    ("level", "low", "high", "expected"),
    [
        ("token", 0.9, 2.1, [[[True, False], [False]], [[True, True]]]),
        # Products within a turn: 1, 4 and 2.
        ("turn", 0.9, 2.1, [[[True, True], [False]], [[True, True]]]),
        ("turn", 0.9, 1.9, [[[True, True], [False]], [[False, False]]]),
        # Their geometric means: 1, 4 and sqrt(2) = 1.414.
        ("turn_geo", 0.9, 1.42, [[[True, True], [False]], [[True, True]]]),
        ("turn_geo", 0.9, 1.41, [[[True, True], [False]], [[False, False]]]),
        # Products over the trajectory: 2 * 1/2 * 4 = 4 and 2.
        ("sequence", 0.9, 2.1, [[[False, False], [False]], [[True, True]]]),
        ("sequence", 2.5, 4.1, [[[True, True], [True]], [[False, False]]]),
        # Geometric means over the trajectory: 4^(1/3) = 1.587 and 1.414.
        ("geometric", 0.9, 1.58, [[[False, False], [False]], [[True, True]]]),
        ("geometric", 1.42, 1.59, [[[True, True], [True]], [[False, False]]]),
    ],
)
def test_levels_of_mrs(level: Level, low: float, high: float, expected: list[list[list[bool]]]) -> None:
    got = keeps(MRS(level=level, low=low, high=high), MISMATCHED, LOG_RATIOS)
    found = [
        [got[k, t, : len(turn.completion.token_ids)].tolist() for t, turn in enumerate(trajectory.turns)]
        for k, trajectory in enumerate(MISMATCHED.trajectories)
    ]
    assert found == expected


def rounded(weights_KTL: torch.Tensor, of: Group) -> list[list[list[float]]]:
    """The weights of the sampled tokens, to four digits."""
    return [
        [[round(w, 4) for w in weights_KTL[k, t, : len(turn.completion.token_ids)].tolist()] for t, turn in enumerate(row.turns)]
        for k, row in enumerate(of.trajectories)
    ]


@pytest.mark.parametrize(
    ("level", "rho"),
    [
        ("token", [[[2.0, 0.5], [4.0]], [[1.0, 2.0]]]),
        # Products within a turn: 2 * 1/2, 4 and 1 * 2; their geometric means: 1, 4 and sqrt(2).
        ("turn", [[[1.0, 1.0], [4.0]], [[2.0, 2.0]]]),
        ("turn_geo", [[[1.0, 1.0], [4.0]], [[1.4142, 1.4142]]]),
        # Over the trajectory: 2 * 1/2 * 4 and 1 * 2; 4^(1/3) and sqrt(2).
        ("sequence", [[[4.0, 4.0], [4.0]], [[2.0, 2.0]]]),
        ("geometric", [[[1.5874, 1.5874], [1.5874]], [[1.4142, 1.4142]]]),
    ],
)
def test_levels_of_tis_and_mis(level: Level, rho: list[list[list[float]]]) -> None:
    assert rounded(weigh(TIS(level, high=math.inf), MISMATCHED, LOG_RATIOS), MISMATCHED) == rho
    truncated = [[[min(max(w, 0.75), 3.0) for w in row] for row in rows] for rows in rho]
    assert rounded(weigh(TIS(level, low=0.75, high=3.0), MISMATCHED, LOG_RATIOS), MISMATCHED) == truncated
    masked = [[[w if 0.75 <= w <= 3.0 else 0.0 for w in row] for row in rows] for rows in rho]
    assert rounded(weigh(MIS(level, low=0.75, high=3.0), MISMATCHED, LOG_RATIOS), MISMATCHED) == masked


def test_the_bounds_of_tis_and_mis_and_their_worked_examples() -> None:
    assert (TIS().level, TIS().low, TIS().high) == ("token", 0.0, 2.0)
    assert (MIS().level, MIS().low, MIS().high) == ("token", 0.5, 5.0)
    one, d = group([turn(n=2)]), torch.tensor([[[4.0, 0.5]]]).log()
    assert rounded(weigh(TIS(), one, d), one) == [[[2.0, 0.5]]]
    # 4 * 0.5 = 2
    assert rounded(weigh(TIS("turn"), one, d), one) == [[[2.0, 2.0]]]
    three, d = group([turn(n=3)]), torch.tensor([[[4.0, 0.5, 0.4]]]).log()
    assert rounded(weigh(MIS(low=0.499), three, d), three) == [[[4.0, 0.5, 0.0]]]
    # 4 * 0.5 * 0.4 = 0.8
    assert rounded(weigh(MIS("turn"), three, d), three) == [[[0.8, 0.8, 0.8]]]


def test_weights_of_long_sequences_stay_finite_and_above_0() -> None:
    # Two tokens with d = 600 each: e^1200 is no float64, e^-1200 is 0; the limit is e^20 = 4.85e8.
    one = group([turn(n=2)])
    large = TIS("sequence", high=math.inf)
    for d, expected in ((600.0, math.exp(20)), (-600.0, math.exp(-20))):
        assert weigh(large, one, torch.full((1, 1, 2), d)).flatten().tolist() == pytest.approx([expected] * 2)


def test_only_tokens_that_are_left_enter_a_ratio() -> None:
    # Of ratios 2, 1/2 | 4 without the second turn: 1 instead of 4 over the trajectory.
    kept_KTL = sampled(MISMATCHED)
    kept_KTL[0, 1] = False
    found = TIS("sequence")(MISMATCHED, LOG_RATIOS, kept_KTL, torch.Generator())
    assert found[0, 0].tolist() == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize(
    ("level", "expected"),
    [("turn", [[[0.0, 0.0], [1.0]], [[1.0, 1.0]]]), ("sequence", [[[0.0, 0.0], [0.0]], [[1.0, 1.0]]])],
)
def test_the_veto_alone(level: Scope, expected: list[list[list[float]]]) -> None:
    # 0.00009 is below 1e-4; 0.00011 is not. The product with 1e6 is above 1, so that no product shows it.
    ratios = torch.tensor([[[1e6, 0.00009], [1.0, 0.0]], [[0.00011, 1.0], [0.0, 0.0]]]).log()
    assert rounded(weigh(Veto(level=level), MISMATCHED, ratios), MISMATCHED) == expected


def test_the_bounds_of_mrs_are_the_papers_and_belong_to_it() -> None:
    assert (MRS().level, MRS().low, MRS().high, MRS().veto) == ("geometric", 0.999, 1.001, 1e-4)
    one = group([turn(n=2)])
    for d, kept in ((0.0009, True), (0.0011, False), (-0.0009, True), (-0.0011, False)):
        assert keeps(MRS(), one, torch.full((1, 1, 2), d)).all().item() is kept
    assert keeps(MRS(low=1.0, high=1.0), one).all()
    # The worked example: the mean of 0.002 and 0 is 0.001, exp(0.001) = 1.0010005 > 1.001; that of 0.002 and -0.002 is 0.
    assert not keeps(MRS(), one, torch.tensor([[[0.002, 0.0]]])).any()
    assert keeps(MRS(), one, torch.tensor([[[0.002, -0.002]]])).all()
    assert not keeps(MRS(level="token"), one, torch.tensor([[[0.002, -0.002]]])).any()


def test_the_veto_rejects_the_turn_of_an_impossible_token() -> None:
    # Ratios e^-9.3 = 9e-5 and e^9.3: their product is 1, so that only the veto sees them. The other turn stays.
    two = group([turn(n=2), turn(n=2)])
    ratios = torch.tensor([[[-9.3, 9.3], [0.0, 0.0]]])
    assert keeps(MRS(), two, ratios).tolist() == [[[False, False], [True, True]]]
    assert keeps(MRS(veto=None), two, ratios).all()
    # ln(1e-4) = -9.2103
    assert keeps(MRS(), two, torch.tensor([[[-9.2, 9.2], [0.0, 0.0]]])).all()
    assert not keeps(MRS(), two, torch.tensor([[[-9.22, 9.22], [0.0, 0.0]]]))[0, 0].any()
    assert keeps(MRS(level="token", low=0.5, high=2.0), two, ratios).tolist() == [[[False, False], [True, True]]]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: MRS(level="word"), "MRS.level is 'word': use one of token, turn, turn_geo, sequence, geometric"),
        (lambda: MRS(low=1.1, high=1.0), "MRS.low is 1.1"),
        (lambda: MRS(veto=0.0), "MRS.veto is 0.0"),
        (lambda: MRS(veto=float("nan")), "MRS.veto is nan"),
        (lambda: TIS(level="word"), "TIS.level is 'word': use one of token, turn, turn_geo, sequence, geometric"),
        (lambda: TIS(low=3.0), "TIS.low is 3.0 and TIS.high 2.0"),
        (lambda: TIS(high=0.0), "TIS.high is 0.0: it must be a number above 0"),
        (lambda: MIS(low=-1.0), "MIS.low is -1.0: it must be"),
        (lambda: Veto(level="token"), "Veto.level is 'token': use one of turn, sequence"),
        (lambda: Veto(least=0.0), "Veto.least is 0.0"),
        (lambda: PRS(level="token"), "PRS.level is 'token'"),
        (lambda: PRS(slope=-1.0), "PRS.slope is -1.0"),
        (lambda: PRS(coverage="num"), "PRS.coverage is 'num': use one of time, count"),
    ],
)
def test_unknown_rules_are_refused(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        make()


LEVELS: tuple[Level, ...] = get_args(Level)
EVERY = [
    *(MRS(level=level, low=0.7, high=1.4) for level in LEVELS),
    *(TIS(level, low=0.8, high=1.5) for level in LEVELS),
    *(MIS(level, low=0.7, high=1.4) for level in LEVELS),
    *(Veto(least=0.7), Veto(least=0.7, level="turn")),
    *(PRS(slope=0.0), PRS(slope=0.0, level="geometric"), VoidTurns(), FlatGroups()),
]
"""Deterministic ones, so that a permutation has no draws to move."""


@st.composite
def drawn_groups(draw: st.DrawFn) -> tuple[Group, torch.Tensor]:
    def one() -> Turn:
        status = draw(st.sampled_from([Status.CORRECT, Status.INCORRECT]))
        tokens = draw(st.integers(1, 3))
        return turn(draw(st.sampled_from([0.0, 0.5, 1.0])), draw(st.sampled_from([0.1, 0.3, 0.9])), status, n=tokens)

    of = group(*[[one() for _ in range(draw(st.integers(1, 3)))] for _ in range(draw(st.integers(1, 4)))])
    shape = sampled(of).shape
    ratios = draw(st.lists(st.integers(-4, 4), min_size=math.prod(shape), max_size=math.prod(shape)))
    return of, torch.tensor(ratios).view(shape) / 8


def test_all_kinds_are_among_those_whose_properties_are_tested() -> None:
    assert {type(correction) for correction in EVERY} == set(CORRECTIONS.values())


@pytest.mark.parametrize("correction", EVERY, ids=str)
@settings(max_examples=40)
@given(drawn=drawn_groups(), seed=st.integers(0, 2**16))
def test_properties_of_every_correction(correction: Correction, drawn: tuple[Group, torch.Tensor], seed: int) -> None:
    of, ratios_KTL = drawn
    sampled_KTL = sampled(of)
    got = weigh(correction, of, ratios_KTL)
    assert keeps(correction, of, ratios_KTL).shape == sampled_KTL.shape

    # A rejection knows nothing between 0 and 1; weights are within their bounds.
    weights = got[sampled_KTL]
    assert bool((torch.isfinite(weights) & (weights >= 0)).all())
    if isinstance(correction, (MRS, PRS, VoidTurns, FlatGroups, Veto)):
        assert bool(((weights == 0) | (weights == 1)).all())
    if isinstance(correction, (TIS, MIS)):
        within = (weights >= correction.low * (1 - 1e-12)) & (weights <= correction.high * (1 + 1e-12))
        assert bool((within | (weights == 0) if isinstance(correction, MIS) else within).all())

    # Where sampling and training agree, nothing is weighed or dropped for a mismatch.
    if correction.needs_ratios:
        assert torch.equal(weigh(correction, of), sampled_KTL.double())

    # What stands in the padding has no influence, and neither has more padding.
    poisoned = torch.where(sampled_KTL, ratios_KTL, torch.nan)
    assert torch.equal(weigh(correction, of, poisoned), got)
    wider = torch.nn.functional.pad(ratios_KTL, (0, 2, 0, 1), value=5.0)
    wide = torch.nn.functional.pad(sampled_KTL, (0, 2, 0, 1), value=False)
    K, T, L = sampled_KTL.shape
    padded = torch.where(wide, correction(of, wider, wide, torch.Generator()).double(), 0.0)
    torch.testing.assert_close(padded[:, :T, :L], got, atol=0.0, rtol=1e-12)

    # Equivariant under a permutation of the trajectories.
    order = torch.randperm(K, generator=torch.Generator().manual_seed(seed)).tolist()
    shuffled = Group(of.problem, tuple(of.trajectories[k] for k in order))
    permuted = correction(shuffled, ratios_KTL[order], sampled_KTL[order], torch.Generator()).double()
    torch.testing.assert_close(torch.where(sampled_KTL[order], permuted, 0.0), got[order], atol=0.0, rtol=1e-12)


@pytest.mark.parametrize("correction", EVERY, ids=str)
@settings(max_examples=20)
@given(drawn=drawn_groups())
def test_what_a_rejection_drops_stays_dropped_in_any_order(correction: Correction, drawn: tuple[Group, torch.Tensor]) -> None:
    of, ratios_KTL = drawn
    sampled_KTL, rejection = sampled(of), PRS(slope=0.0)
    dropped_KTL = sampled_KTL & ~keeps(rejection, of)
    for order in ((rejection, correction), (correction, rejection)):
        kept = keep(of, order, ratios_KTL, sampled_KTL, torch.Generator())
        assert not kept.weights_KTL[dropped_KTL].any()
    # The weight saw everything: what is left of it is unchanged.
    assert torch.equal(kept.weights_KTL[~dropped_KTL], weigh(correction, of, ratios_KTL)[~dropped_KTL])
