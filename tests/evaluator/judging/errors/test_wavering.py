"""Whole numbers that roundings decide, and those that they do not."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn
from torch.nn import functional

from rlkernel.evaluator.judging.drawing import draw_rounds
from rlkernel.evaluator.judging.errors.wavering import (
    BOTH_WAYS,
    CALLS,
    MORE_CALLS,
    OtherRoundings,
    Wavering,
    moved,
    some_give,
    wavers,
)
from rlkernel.evaluator.judging.references.reference_calls import call, tensors_of
from rlkernel.reference import load_reference
from rlkernel.types import Precision

NEIGHBOURS = torch.tensor([[0.0, 8.5, 9.2, 1.0]])
"""1 - tanh(x) is 2 exp(-2 x): 8.3e-8 and 2.0e-8 there, which are 1.4 and 0.3 times 2^-24, so that tanh gives 1 - 2^-24 and 1."""


LEVELS = torch.tensor([[0.5 + 2.0**-24], [0.5], [0.5 + 2.0**-16], [0.5 - 2.0**-16]])
"""One unit above a sum, the sum itself, and more than two hundred units beside it."""


class Answer(nn.Module):
    def __init__(self, answer: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.answer = answer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.answer(x)


def unsure(answer: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> float:
    turns = OtherRoundings(lambda: Answer(answer), lambda: [x.clone()], 0).turns()
    return wavers(turns, tensors_of(call(Answer(answer), [x], 0)))


@pytest.mark.parametrize(
    ("answer", "x", "found"),
    [
        (lambda x: torch.tanh(x).argmax(1), NEIGHBOURS, 1),
        (lambda x: x.argmax(1), NEIGHBOURS, 0),  # nothing is rounded
        (lambda x: torch.tanh(x).argmax(1), NEIGHBOURS / 8, 0),  # far from each other
        (lambda x: torch.tanh(x).argmax(1), torch.tensor([[1.0, 8.5, 8.5]]), 0),  # equal numbers stay equal
        (lambda x: torch.tanh(x), NEIGHBOURS, 0),  # no whole numbers
        (lambda x: torch.softmax(x, 1) >= 1 / 3, torch.ones(1, 3), 1),  # exactly there, by chance
        (lambda x: 2 * x > 1, torch.full((1, 3), 0.5), 0),  # exact everywhere
        (lambda x: x.cumsum(1).long() - 1, torch.ones(1, 3), 0),  # counts are exact, too
        (lambda x: (x @ x.T).long(), torch.ones(1, 3), 0),
        (lambda x: x.sum(1).long(), torch.full((1, 4), 0.25), 1),
        (lambda x: x.sum(1).long() % 7, torch.full((1, 4), 2.0**24), 1),  # above what float32 counts to
    ],
)
def test_wavers(answer: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor, found: float) -> None:
    assert unsure(answer, x) == found


def test_it_is_the_share_of_numbers_that_waver() -> None:
    apart = torch.linspace(0, 1, 4).repeat(7, 1)
    assert unsure(lambda x: torch.tanh(x).argmax(1), torch.cat([apart, NEIGHBOURS])) == 1 / 8


@pytest.mark.parametrize(("found", "right"), [([3, 2], True), ([3, 1], True), ([3, 0], False), ([0, 1], False)])
def test_numbers_that_some_rounding_gives(found: list[int], right: bool) -> None:
    """Of the first row no rounding decides, and of the second one names either neighbour."""
    x = torch.cat([torch.linspace(0, 1, 4)[None], NEIGHBOURS])
    turns = OtherRoundings(lambda: Answer(lambda x: torch.tanh(x).argmax(1)), lambda: [x.clone()], 0).turns()
    assert some_give(torch.tensor(found), torch.tensor([3, 2]), 0, turns) is right


@pytest.mark.parametrize(("rows", "left", "asked"), [(1000, 1, 29), (1000, 2, BOTH_WAYS), (1, 1, 29)])
def test_more_calls_are_made_where_few_numbers_are_left(rows: int, left: int, asked: int) -> None:
    """The 29th call gives what no other one does: it is asked for one number of a thousand, and not for two."""
    wanted = torch.zeros(rows, dtype=torch.int64)
    found = wanted.clone()
    found[:left] = 3
    taken = list[int]()

    def turns() -> Iterator[list[torch.Tensor]]:
        for number in range(1, MORE_CALLS + 1):
            taken.append(number)
            yield [found if number == 29 else wanted]

    assert some_give(found, wanted, 0, turns()) is (asked == 29)
    assert taken[-1] == asked


def test_each_of_several_neighbours_may_be_the_largest() -> None:
    """Quotients of 1 and of what lies 1, 2, 3, 6 and 12 times 2^-24 below: each may lose up to 8 of these. 12 is out of reach,
    and for 6 all others would have to lose nearly as much as they may."""
    x = torch.tensor([[0.0, 12.0, 6.0, 3.0, 2.0, 1.0, 0.0]])
    x = torch.where(torch.arange(7) > 0, 1 - x * 2**-24, 0.0)
    turns = list(OtherRoundings(lambda: Answer(lambda x: (x / 1).argmax(1)), lambda: [x.clone()], 0).turns())
    assert len(turns) == MORE_CALLS
    given = [place for place in range(7) if some_give(torch.tensor([place]), torch.tensor([6]), 0, iter(turns))]
    assert given == [3, 4, 5, 6]


def test_sums_of_shares_may_be_larger_as_well_as_smaller() -> None:
    """The sums are 1/4, 1/2, 3/4 and 1 exactly. One that is a little larger reaches a level just above it, and one that is
    a little smaller does not reach a level that it is equal to; a level two hundred units away is reached by none."""

    def reached(x: torch.Tensor) -> torch.Tensor:
        return torch.searchsorted(x.cumsum(-1), LEVELS).squeeze(1)

    def right(found: list[int]) -> bool:
        turns = OtherRoundings(lambda: Answer(reached), lambda: [x.clone()], 0).turns()
        return some_give(torch.tensor(found), wanted, 0, turns)

    x = torch.full((4, 4), 0.25)
    wanted = reached(x)
    assert wanted.tolist() == [2, 1, 2, 1]
    assert right([1, 1, 2, 1]) and right([2, 2, 2, 1]) and right([1, 2, 2, 1])
    assert not right([2, 1, 1, 1]) and not right([2, 1, 2, 2])


@pytest.mark.parametrize(("units", "right"), [(20, True), (200, False)])
def test_a_long_sum_may_be_off_by_more_units(units: int, right: bool) -> None:
    """A sum of 4,096 terms moves by up to 0.5 * 64 = 32 units of its size of 1/2 or 1."""

    def reached(x: torch.Tensor) -> torch.Tensor:
        return torch.searchsorted(x.cumsum(-1), levels).squeeze(1)

    x = torch.full((8, 4096), 2.0**-12)
    levels = torch.tensor([0.5] * 4 + [1.0] * 4)[:, None] * (1 - units * 2.0**-23)
    wanted = reached(x)
    assert wanted.tolist() == [2047] * 4 + [4095] * 4
    turns = OtherRoundings(lambda: Answer(reached), lambda: [x.clone()], 0).turns()
    assert some_give(wanted + 1, wanted, 0, turns) is right


def turned(answer: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> float:
    """The most that a number moves, in units of float32 at its size, in any of the turns."""
    usual = answer(x).double()
    most = 0.0
    for turn in range(MORE_CALLS):
        with Wavering(turn):
            most = max(most, float(((answer(x).double() - usual) / usual).abs().max()) * 2**23)
    return most


@pytest.mark.parametrize(
    ("answer", "units"),
    [
        (lambda x: x.cumsum(1), 32),
        (lambda x: x.sum(1), 32),
        (lambda x: x @ x.T, 32),
        (lambda x: torch.nn.functional.linear(x, x[:2], x[0, :2]), 32),
        (lambda x: torch.addmm(x[0, :8], x, x.T), 32),
        (lambda x: torch.exp(x), 4),
        (lambda x: x[:, :32].sum(1), 4),
    ],
    ids=["cumsum", "sum", "product", "linear", "addmm", "exp", "short sum"],
)
def test_by_how_much_numbers_move(answer: Callable[[torch.Tensor], torch.Tensor], units: float) -> None:
    """Half the root of 4,096 terms; the root of 32 is less than the 8 that would be more than usual."""
    x = torch.rand(8, 4096, generator=torch.Generator().manual_seed(0)) + 0.5
    assert 0.7 * units < turned(answer, x) < units + 1.5


@pytest.mark.parametrize(
    ("answer", "terms"),
    [
        (lambda x: functional.conv1d(x, x.view(4, 8, 16)[:, :, :3]), 24),
        (lambda x: functional.conv_transpose1d(x, x[:, :, :1].view(8, 1, 1).expand(8, 2, 3)), 24),
        (lambda x: functional.conv_transpose1d(x, x[:, :, :1].view(8, 1, 1).expand(8, 2, 3), groups=4), 6),
        (lambda x: torch.addbmm(x[0, :, :8], x.view(4, 8, 16), x.view(4, 16, 8)), 64),
    ],
    ids=["convolution", "transposed", "transposed in groups", "sum of products"],
)
def test_how_many_terms_are_added_up(
    answer: Callable[[torch.Tensor], torch.Tensor], terms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = list[int]()

    def counted(tensor: torch.Tensor, turn: int, largest: float | None, terms: int) -> torch.Tensor:
        told.append(terms)
        return tensor

    monkeypatch.setattr("rlkernel.evaluator.judging.errors.wavering.moved", counted)
    with Wavering(0):
        answer(torch.rand(1, 8, 64))
    assert told == [terms]


@pytest.mark.parametrize(("left_out", "right"), [(2e-6, True), (1e-5, False), (1e-4, False)])
def test_no_part_of_a_very_long_sum_may_be_left_out(left_out: float, right: bool) -> None:
    """Half the root of four million units is 1.2e-4 of a sum, which would be 512 of its terms."""

    def above(x: torch.Tensor) -> torch.Tensor:
        return x > x.mean()

    x = torch.rand(1 << 22, generator=torch.Generator().manual_seed(0))
    wanted, found = above(x), x > x.double().mean() * (1 - left_out)
    assert bool((found != wanted).any())
    turns = OtherRoundings(lambda: Answer(above), lambda: [x.clone()], 0).turns()
    assert some_give(found, wanted, 0, turns) is right


def test_half_precision_is_added_up_in_float32() -> None:
    x = torch.full((8,), 0.75, dtype=torch.bfloat16)
    assert torch.equal(moved(x, 1), moved(x, 1, terms=1 << 20)), "512 units of float32 are less than 4 of bfloat16"


def test_the_largest_number_stays_the_largest_where_numbers_gain() -> None:
    x = 1 - torch.arange(4096) * 2.0**-24
    gained = moved(x, CALLS + 1, 1.0)
    assert float(gained[0]) == 1.0 and float(gained[1:].max()) < 1.0
    assert bool((gained >= x).all()) and float((gained > x).double().mean()) > 0.5
    bits = torch.tensor([float("inf"), float("nan"), 0.0, -0.0])
    assert moved(bits, CALLS + 1, 1.0).isnan().tolist() == [False, True, False, False]
    assert moved(bits, CALLS + 1, 1.0)[[0, 2, 3]].tolist() == [float("inf"), 0.0, 0.0]


def test_a_quotient_that_is_rounded_at_once_is_whole_in_any_rounding() -> None:
    """Of 3 a little less would be cut off to 2."""
    x = torch.arange(1.0, 65.0).view(8, 8) * 3 + 1

    def answer(x: torch.Tensor) -> torch.Tensor:
        return torch.div(x, 3.0, rounding_mode="floor").long()

    assert unsure(answer, x) == 0
    turns = OtherRoundings(lambda: Answer(answer), lambda: [x.clone()], 0).turns()
    assert not some_give(answer(x) - 1, answer(x), 0, turns)
    with Wavering(0) as wavering:
        torch.div(x, 3.0, rounding_mode="floor")
    assert wavering.jumps


def test_a_reference_that_refuses_such_numbers_is_not_known_to_waver() -> None:
    def answer(x: torch.Tensor) -> torch.Tensor:
        p = torch.softmax(x, 1)
        assert float(p.max()) == 0.5
        return p.argmax(1)

    assert unsure(answer, torch.zeros(1, 2)) == 0


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_numbers_move_by_few_units(dtype: torch.dtype) -> None:
    x = torch.randn(4096, generator=torch.Generator().manual_seed(0)).to(dtype)
    others = [moved(x, turn) for turn in range(3)]
    eps = torch.finfo(dtype).eps
    for other in others:
        assert float(((other.double() - x.double()) / x.double()).abs().max()) <= 4.5 * eps  # 4 units, and half of one more
        assert bool((other.abs() <= x.abs()).all())
        assert 0.5 < float((other != x).double().mean()) <= 1.0
    assert not torch.equal(others[0], others[1])
    order = torch.randperm(4096, generator=torch.Generator().manual_seed(1))
    assert torch.equal(moved(x[order], 1), others[1][order])  # by its value, wherever it stands


def test_no_round_is_scaled_to_where_roundings_decide() -> None:
    """The largest of 100 numbers is about 2.5, and 7.5 where all are scaled by 3: there tanh has neighbours in most draws
    of 12 rows. A milder round takes their place."""
    source = (
        "import torch\nimport torch.nn as nn\n\nclass Model(nn.Module):\n    def forward(self, x):\n"
        "        return torch.argmax(torch.tanh(x), 1)\n\ndef get_inputs():\n    return [torch.randn(12, 100)]\n\n"
        "def get_init_inputs():\n    return []\n"
    )
    reference, keys = load_reference(source, small=False), random.Random(0)
    notes = set[str]()
    for _ in range(20):
        for drawn in draw_rounds(reference, Precision.PYTORCH, str(keys.random()), other=False):
            for one in drawn:
                x = one.inputs[0]
                other = (2 * torch.sigmoid(2 * x) - 1).argmax(1)
                assert torch.equal(other, one.expected.reference[0]), one.expected.note
                notes.add(one.expected.note)
    assert {note for note in notes if "scaled" in note} == {
        f" (inputs scaled by {factor}, parameters at other values)" for factor in ("1.5", "3")
    }
