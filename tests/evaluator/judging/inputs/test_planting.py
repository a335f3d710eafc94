"""Numbers of forward's arguments among its inputs, for references that have nothing to do otherwise."""

from __future__ import annotations

import pytest
import torch

from rlkernel.evaluator.judging.drawing import draw_rounds
from rlkernel.evaluator.judging.inputs.planting import SHARE, idle, only_values, planted, tells
from rlkernel.evaluator.program.codes import SIGNED
from rlkernel.reference import load_reference
from rlkernel.types import Precision

SOURCE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x, wanted):
        return {answer}

def get_inputs():
    return [torch.randint(1, 10, (4096,)), 50]

def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(
    ("outputs", "values"),
    [
        ([torch.zeros(3), torch.tensor(7)], (0.0, 7.0)),
        ([torch.tensor([True, True])], (1.0,)),
        ([torch.tensor([0.0, 1.0])], (None,)),
        *(([torch.full((3,), 7, dtype=dtype)], (7.0,)) for dtype in SIGNED),
        ([torch.tensor([0, 60_000]).to(torch.uint16)], (None,)),
        ([torch.tensor([torch.nan])], (None,)),
        ([torch.zeros(3), torch.zeros(0)], (0.0, None)),
        ([], ()),
    ],
)
def test_outputs_that_hold_one_number(outputs: list[torch.Tensor], values: tuple[float | None, ...]) -> None:
    assert only_values(outputs) == values


def test_outputs_are_idle_where_two_calls_give_one_number_and_another_call_tells_where_it_gives_another() -> None:
    usual, again = (0.0, 3.5, None, 7.0), (0.0, 2.5, None, 7.0)
    assert idle(usual, again) == (0, 3), "the loss at 1 is one number, but another one in each call"
    assert tells((0, 3), usual, (0.0, 3.5, None, None)) and not tells((0, 3), usual, (0.0, 9.5, 4.0, 7.0))
    assert idle((), ()) == () and not tells((), usual, again)


def test_whole_numbers_among_the_arguments_are_put_where_they_fit() -> None:
    wide, narrow, real = torch.zeros(64, 64, dtype=torch.int32).t(), torch.zeros(4096, dtype=torch.uint8), torch.zeros(4096)
    inputs = [wide, narrow, real, 3, 70_000, 0.5, True]
    found = planted(inputs, 1)
    assert found[0].unique().tolist() == [0, 3, 70_000] and found[0].stride() == wide.stride()
    assert found[1].unique().tolist() == [0, 3], "70,000 is no byte"
    assert found[2:] == inputs[2:] and not wide.any(), "the given ones are as they were"
    put = int((found[0] != 0).sum())
    assert abs(put - SHARE * 4096) < 5 * (SHARE * (1 - SHARE) * 4096) ** 0.5  # five standard deviations
    assert torch.equal(planted(inputs, 1)[0], found[0]) and not torch.equal(planted(inputs, 2)[0], found[0])
    assert planted([real, 3], 1) == [real, 3] and planted(rest := [wide, 0.5], 1) is rest
    (inner,), _ = planted([[wide], 3], 1)
    assert inner.unique().tolist() == [0, 3], "in a list, too"


@pytest.mark.parametrize("seed", range(40))
def test_each_number_is_put_somewhere_also_among_few_elements(seed: int) -> None:
    (few, two, _, _) = planted([torch.zeros(16, dtype=torch.int64), torch.zeros(2, dtype=torch.int64), 5, 7], seed)
    assert set(few.tolist()) == {0, 5, 7} and {5, 7} & set(two.tolist())


@pytest.mark.parametrize(
    ("answer", "more"),
    [
        ("torch.sum(x == wanted)", 1),  # always zero
        ("torch.sum(x == wanted), x * 2", 1),  # always zero, beside another result
        ("torch.sum(x == wanted - 45)", 0),
        ("torch.sum(x > 10 * wanted)", 0),  # always zero, and so it is with 50 among them
        ("torch.eye(10)[x][:, 0] * 0.0 + wanted", 0),  # 50 is no row
        ("x + wanted", 0),
        ("x.to(torch.uint32)", 0),
    ],
)
def test_a_reference_with_nothing_to_do_is_judged_first_where_it_has(answer: str, more: int) -> None:
    reference = load_reference(SOURCE.format(answer=answer), small=False)
    rounds = [one for some in draw_rounds(reference, Precision.PYTORCH, "key", other=False) for one in some]
    assert len(rounds) == 3 + more
    assert ["among its inputs" in one.expected.note for one in rounds] == [True] * more + [False] * 3
    if more:
        assert int(rounds[0].expected.reference[0]) > 300 and int(rounds[1].expected.reference[0]) == 0
        assert not rounds[0].expected.ordinary and rounds[1].expected.ordinary
