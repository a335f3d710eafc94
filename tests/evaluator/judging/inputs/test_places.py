"""What a stressed round does to single inputs: zeros that stay, masks that get holes, numbers that may be uneven."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from rlkernel.evaluator.judging.inputs.places import places
from rlkernel.evaluator.judging.inputs.stress import holed, is_mask, stressed, stresses
from rlkernel.evaluator.messages.judgement import Places, Stress

SEEDS = (1, 2, 3)


class Forward(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs)


def draw(seed: int) -> list[Any]:
    torch.manual_seed(seed)
    return [torch.randn(8, 16), torch.ones(8, 16, dtype=torch.bool), torch.ones(8, 16, dtype=torch.int64), torch.zeros(16)]


@pytest.mark.parametrize(
    ("forward", "found"),
    [
        (lambda x, keep, count, out: x * keep * count + out, Places((), (1, 2), (0,))),
        (lambda x, keep, count, out: out.copy_((x * keep).sum(0)), Places((3,), (1, 2), (0,))),
        (lambda x, keep, count, out: x * keep / count + out, Places((), (1,), (0,))),  # nothing is divided by 0
        (lambda x, keep, count, out: x[keep] * 2, Places((3,), (2,), (0,))),  # with holes, the output has another shape
        (lambda x, keep, count, out: x.gather(1, count) + out, Places((), (1, 2), (0,))),
    ],
)
def test_what_is_done_to_single_inputs(forward: Callable[..., Any], found: Places) -> None:
    assert places(lambda: Forward(forward), draw, SEEDS, Stress.UNEVEN) == found
    assert places(lambda: Forward(forward), draw, SEEDS, Stress.SCALED) == Places(found.kept, found.holed, ())
    assert places(lambda: Forward(forward), draw, SEEDS, Stress.NONE) == Places()


def test_what_is_looked_at_takes_no_memory_while_the_reference_is_called() -> None:
    looked_at: list[weakref.ref[torch.Tensor]] = []

    def noted(seed: int) -> list[Any]:
        inputs = draw(seed)
        looked_at.append(weakref.ref(inputs[0]))
        return inputs

    def model() -> Forward:
        assert looked_at and all(one() is None for one in looked_at)
        return Forward(lambda x, keep, count, out: x * keep * count + out)

    assert places(model, noted, SEEDS, Stress.UNEVEN) == Places((), (1, 2), (0,))


def test_a_reference_that_refuses_a_mask_with_holes_is_given_none() -> None:
    def refusing(x: torch.Tensor, keep: torch.Tensor, count: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        assert keep.all()
        return x + out

    assert places(lambda: Forward(refusing), draw, SEEDS, Stress.SCALED).holed == (2,)


def test_lengths_that_leave_memory_unwritten_are_not_shortened() -> None:
    """What a shorter length leaves of `torch.empty` is another thing for each side."""

    def grouped(x: torch.Tensor, lengths: torch.Tensor, fill: Callable[..., torch.Tensor]) -> torch.Tensor:
        found, start = fill(32, 8), 0
        for length in lengths.tolist():
            found[start : start + length] = 2 * x[start : start + length]
            start += length
        return found

    def drawn(seed: int) -> list[Any]:
        torch.manual_seed(seed)
        return [torch.randn(32, 8), torch.full((4,), 8)]

    for fill, found in ((torch.empty, ()), (torch.zeros, (1,))):
        assert places(lambda fill=fill: Forward(lambda x, n: grouped(x, n, fill)), drawn, SEEDS, Stress.SCALED).holed == found  # type: ignore[misc]


def test_a_reference_that_shortens_a_list_beside_indices_of_zeros_has_them_left_alone() -> None:
    def taken(parts: list[torch.Tensor], rows: torch.Tensor) -> torch.Tensor:
        return parts.pop()[rows] + parts[0][rows]

    def drawn(seed: int) -> list[Any]:
        torch.manual_seed(seed)
        return [[torch.randn(4, 8), torch.randn(4, 8)], torch.zeros(6, dtype=torch.int64)]

    assert places(lambda: Forward(taken), drawn, SEEDS, Stress.SCALED).holed == ()


def test_masks_get_holes_in_a_quarter_of_their_elements_and_inputs_of_one_number_get_several() -> None:
    keep, padding, count = torch.ones(4096, dtype=torch.bool), torch.zeros(4096, dtype=torch.bool), torch.ones(4096).int()
    assert [round(float(holed(t).float().mean()), 2) for t in (keep, padding, count)] == [0.75, 0.25, 0.75]
    lengths, nothing = torch.full((4096,), 33), torch.zeros(4096, dtype=torch.int64)
    assert holed(lengths).unique().tolist() == [17, 33] and round(float((holed(lengths) == 33).float().mean()), 2) == 0.75
    assert [is_mask(t) for t in (lengths, -lengths, nothing, torch.arange(8))] == [True, False, True, False]
    weights = torch.full((64,), 0.5)
    (varied,) = stressed([weights], Stress.VARIED)
    assert varied.unique().numel() == 64 and float(varied.min()) >= 0.25 and float(varied.max()) <= 0.75  # half to three halves
    assert torch.equal(stressed([weights], Stress.SHIFTED)[0], varied * 8)
    assert stressed([keep], Stress.SCALED)[0] is keep, "only where the reference is known to bear it"
    assert stressed([torch.full((64,), -1e9)], Stress.SCALED)[0].unique().tolist() == [-8e9], "a mask's number"


def test_the_hardest_stress_comes_first() -> None:
    normal, ones, keep = torch.randn(64), torch.ones(64), torch.ones(64, dtype=torch.bool)
    assert stresses([normal]) == (Stress.UNEVEN, Stress.SHIFTED, Stress.SCALED)
    assert stresses([ones]) == (Stress.SCALED, Stress.VARIED)
    assert stresses([[keep], 3]) == (Stress.VARIED,)
    assert stresses([torch.arange(64), 3]) == (Stress.VARIED,)
    assert stresses([torch.zeros(0), 3]) == (Stress.SCALED,)


def rows_of_zeros(seed: int) -> list[Any]:
    torch.manual_seed(seed)
    return [torch.randn(8, 16), torch.zeros(64, dtype=torch.int64), torch.zeros(8, dtype=torch.int32)]


@pytest.mark.parametrize(
    ("forward", "holed"),
    [
        (lambda table, rows, count: table[rows], (1,)),
        (lambda table, rows, count: table[rows] + count.sum(), (1, 2)),
        (lambda table, rows, count: count.index_add_(0, rows[:3] * 0, rows[:3].int() * 0 + 1), (2,)),
        (lambda table, rows, count: table + count.zero_().sum(), ()),  # memory for a result, which nobody reads
        (lambda table, rows, count: table[:1][rows], ()),  # there is no other row
        (lambda table, rows, count: table[rows.nonzero()], ()),  # of another shape
    ],
)
def test_indices_of_the_first_row_become_others_where_that_is_another_answer(
    forward: Callable[..., Any], holed: tuple[int, ...]
) -> None:
    assert places(lambda: Forward(forward), rows_of_zeros, SEEDS, Stress.VARIED).holed == holed


def test_a_quarter_of_zeros_become_one() -> None:
    made = holed(torch.zeros(4096, dtype=torch.int64))
    assert set(made.tolist()) == {0, 1} and 0.2 < float(made.float().mean()) < 0.3
    assert set(holed(torch.full((64,), 9)).tolist()) == {5, 9}


def counted_down(x: torch.Tensor, count: torch.Tensor, step: int) -> torch.Tensor:
    """As many times `x` as a count has steps."""
    total = torch.zeros_like(x)
    while int(count) != 0:
        total, count = total + x, count - step
    return total


@pytest.mark.parametrize(
    ("value", "forward", "other"),
    [
        (10, lambda x, step: x * step, 5),
        (0, lambda x, step: x * step, 1),
        (0, lambda x, step: x + step.zero_(), None),  # memory for a result
        (1, lambda x, step: x / step, None),  # nothing is divided by 0
        (16, lambda x, count: x.sum(1).repeat(int(count)), None),  # of another shape
        (True, lambda x, flag: torch.where(flag, x, -x), False),
        (20, lambda x, count: counted_down(x, count, 5), 10),
        (20, lambda x, count: counted_down(x, count, 4), None),  # from 10 it never comes to 0
    ],
)
def test_a_single_whole_number_becomes_another_one(value: int, forward: Callable[..., Any], other: int | None) -> None:
    """Whoever writes a position or a number of steps into the kernel would be right otherwise."""

    def drawn(seed: int) -> list[Any]:
        torch.manual_seed(seed)
        return [torch.randn(8, 16), torch.tensor(value)]

    found = places(lambda: Forward(forward), drawn, SEEDS, Stress.VARIED)
    assert found.holed == (() if other is None else (1,))
    if other is not None:
        assert stressed(drawn(1), Stress.VARIED, found)[1].item() == other


@pytest.mark.parametrize("value", [0.0, 1.0])
@pytest.mark.parametrize("rare", [True, False])
def test_truth_values_of_which_one_is_rare_get_some_of_it(value: float, rare: bool) -> None:
    """Floating-point zeros, or ones, are truth values where another draw has both; otherwise they are numbers."""

    def ends(seed: int) -> list[Any]:
        torch.manual_seed(seed)
        ends = torch.full((64,), value)
        if rare and seed not in SEEDS:
            ends[seed % 64] = 1.0 - value
        return [torch.randn(64), ends]

    found = places(lambda: Forward(lambda x, ends: x * (1.0 - ends) + ends), ends, SEEDS, Stress.SCALED)
    assert found.holed == ((1,) if rare else ())
    given = stressed(ends(1), Stress.SCALED, found)[1]
    assert (set(given.tolist()) == {0.0, 1.0}) is rare and len(given.unique()) > 1


def test_truth_values_as_numbers_stay_as_they_are() -> None:
    truths = (torch.rand(64) < 0.5).float()
    assert torch.equal(stressed([truths], Stress.EXTREME)[0], truths)
    assert not torch.equal(stressed([truths * 2], Stress.EXTREME)[0], truths * 2)


def copies(seed: int) -> list[Any]:
    torch.manual_seed(seed)
    x = torch.randn(4, 8, 6)
    return [x, torch.randn(4, 8, 6), x, torch.zeros(3, 5), {"also": [x.clone(), torch.zeros(3, 5)]}]


def test_copies_of_an_earlier_input_are_set_apart() -> None:
    def forward(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor, old: torch.Tensor, rest: Any) -> torch.Tensor:
        return (x + y * z + rest["also"][0]).sum() + (old * rest["also"][1]).sum()

    found = places(lambda: Forward(forward), copies, SEEDS, Stress.SCALED)
    assert found == Places(apart=(2, 4, 5))
    x, _, z, old, rest = stressed(copies(1), Stress.SCALED, found)
    large = 8 * copies(1)[0]
    assert torch.equal(x, large) and torch.equal(z, large.roll(1, 0)) and torch.equal(rest["also"][0], large.roll(2, 0))
    assert torch.equal(old.flatten().roll(3), rest["also"][1].flatten())


def test_copies_stay_where_the_reference_asks_for_them() -> None:
    def forward(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor, old: torch.Tensor, rest: Any) -> torch.Tensor:
        assert torch.equal(x, z)
        return x + y + z

    assert places(lambda: Forward(forward), copies, SEEDS, Stress.SCALED).apart == ()


def test_copies_of_drawn_whole_numbers_are_set_apart_and_rows_that_are_copies_moved_on_in_themselves() -> None:
    def draw(seed: int) -> list[torch.Tensor]:
        torch.manual_seed(seed)
        names, one = torch.randint(0, 64, (4, 16)), torch.randint(0, 64, (1, 16))
        bounds = torch.randint(0, 64, (16,)).sort()[0]
        return [names, names.clone(), one.repeat(4, 1), (63 - one).expand(4, 16), bounds, bounds.clone()]

    def forward(*given: torch.Tensor) -> torch.Tensor:
        return torch.stack([one.float().sum() for one in given])

    found = places(lambda: Forward(forward), draw, SEEDS, Stress.VARIED)
    assert found == Places(apart=(1,), rows=(2,))
    _, copied, rows, shared, *bounds = stressed(draw(0), Stress.VARIED, found)
    given = draw(0)
    assert torch.equal(copied, given[0].roll(1, 0)) and torch.equal(shared, given[3])
    assert rows.tolist() == [given[2][0].roll(by).tolist() for by in (0, 1, 2, 3)]
    assert torch.equal(bounds[0], bounds[1]), "numbers in an order stay"

    def sorted_alone(*given: torch.Tensor) -> torch.Tensor:
        assert torch.equal(given[0], given[1])
        return forward(*given)

    assert places(lambda: Forward(sorted_alone), draw, SEEDS, Stress.VARIED).apart == ()


@pytest.mark.parametrize(
    "look_up", [lambda edges, x: torch.searchsorted(edges, x), lambda edges, x: torch.bucketize(x, edges[1])]
)
def test_edges_between_which_a_reference_looks_up_keep_their_order(look_up: Callable[..., torch.Tensor]) -> None:
    """What is found between edges in no order depends on how it is looked for."""

    def draw(seed: int) -> list[torch.Tensor]:
        torch.manual_seed(seed)
        return [torch.arange(16).repeat(4, 1), torch.randint(0, 16, (4, 32))]

    assert places(lambda: Forward(look_up), draw, SEEDS, Stress.VARIED) == Places(moved=(0,))
    read = places(lambda: Forward(lambda edges, x: x * edges.repeat(1, 2)), draw, SEEDS, Stress.VARIED)
    assert read == Places(rows=(0,))


def test_rows_that_are_copies_are_moved_alike_in_all_inputs_but_in_copies_of_one() -> None:
    """A matrix is filled at rows and columns that no two numbers share, and a graph's edges have no direction."""

    def draw(seed: int) -> list[torch.Tensor]:
        torch.manual_seed(seed)
        filled, edges = torch.randperm(64)[:16], torch.rand(8, 8) < 0.3
        rows, columns = (filled // 8).repeat(4, 1), (filled % 8).repeat(4, 1)
        return [rows, columns, columns.clone(), (edges | edges.T).repeat(4, 1, 1)]

    found = places(lambda: Forward(lambda *given: torch.stack([one.float().sum() for one in given])), draw, SEEDS, Stress.VARIED)
    assert found == Places(apart=(2,), rows=(0, 1, 2))
    rows, columns, copied, edges = stressed(draw(0), Stress.VARIED, found)
    given = draw(0)
    assert torch.equal(edges, given[3]) and torch.equal(edges, edges.mT)
    assert [len({*zip(*pair, strict=True)}) for pair in zip(rows.tolist(), columns.tolist(), strict=True)] == [16] * 4
    assert [row.tolist() for row in (columns[3], copied[3])] == [given[1][0].roll(by).tolist() for by in (3, 7)]
