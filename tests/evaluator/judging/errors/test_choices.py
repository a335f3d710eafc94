"""Indices of which PyTorch leaves open which of equal numbers they name."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from rlkernel.evaluator.judging.errors.choices import Choice, Choosing

NUMBERS = torch.tensor([[3.0, 1.0, 3.0, 2.0], [0.0, 0.0, 5.0, 5.0]])


def choices(make: Callable[[torch.Tensor], tuple[torch.Tensor, ...]]) -> dict[int, Choice]:
    with Choosing() as seen:
        made = make(NUMBERS.clone())
    return seen.of(made)


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda x: x.topk(2), [1]),
        (lambda x: (x.topk(2)[1],), [0]),
        (lambda x: x.sort(0), [1]),
        (lambda x: (x.argsort(),), [0]),
        (lambda x: x.median(1), [1]),
        (lambda x: x.kthvalue(2, 0, keepdim=True), [1]),
        (lambda x: x.sort(stable=True), []),
        (lambda x: x.max(1), []),
        (lambda x: (x.argmax(1),), []),
        (lambda x: (x.topk(2)[1] + 1,), []),
        (lambda x: (x.topk(2)[1], x.zero_()), [0]),
        (lambda x: (x.topk(2)[1].zero_(),), []),
    ],
)
def test_of_which_outputs_it_is_left_open(make: Callable[[torch.Tensor], tuple[torch.Tensor, ...]], found: list[int]) -> None:
    assert [*choices(make)] == found


@pytest.mark.parametrize(
    ("indices", "right"),
    [
        ([[0, 2], [2, 3]], True),
        ([[2, 0], [3, 2]], True),
        ([[0, 0], [2, 3]], False),  # one twice
        ([[0, 3], [2, 3]], False),
        ([[0, 4], [2, 3]], False),
        ([[0, -2], [2, 3]], False),
        ([[0], [2]], False),
    ],
)
def test_another_choice_is_right_where_it_names_the_same_numbers(indices: list[list[int]], right: bool) -> None:
    choice = choices(lambda x: x.topk(2))[1]
    assert choice.allows(torch.tensor(indices), torch.tensor([[0, 2], [2, 3]])) is right


def test_zeros_of_both_signs_are_equal_and_so_are_all_nans() -> None:
    numbers = torch.tensor([1.0, 0.0, -0.0, float("nan"), -float("nan")])
    choice = Choice(numbers, 0, kept=True)
    assert choice.allows(torch.tensor([0, 2]), torch.tensor([0, 1])) and choice.allows(torch.tensor([4]), torch.tensor([3]))
    assert not choice.allows(torch.tensor([3]), torch.tensor([1]))


def test_an_index_without_its_axis() -> None:
    choice = choices(lambda x: x.kthvalue(4, 1))[1]
    wanted = torch.tensor([0, 2])
    assert choice.allows(torch.tensor([2, 3]), wanted) and not choice.allows(torch.tensor([1, 3]), wanted)
    assert not choice.allows(torch.tensor([2, 3], dtype=torch.int32), wanted)


def test_numbers_are_those_from_before_they_were_changed_in_place() -> None:
    """Of four numbers that are all the largest afterwards, another is no right answer."""

    def made(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        largest, place = x.topk(1)
        x.clamp_(min=largest)
        return (place,)

    choice = choices(made)[0]
    assert torch.equal(choice.numbers, NUMBERS)
    assert choice.allows(torch.tensor([[2], [3]]), torch.tensor([[0], [2]]))
    assert not choice.allows(torch.tensor([[1], [3]]), torch.tensor([[0], [2]]))
