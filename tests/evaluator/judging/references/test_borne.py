"""Constants get other values where a reference bears that, although it does not of all of them."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from rlkernel.evaluator.judging.drawing import draw_rounds
from rlkernel.evaluator.judging.references.borne import MOST_TRIED, Keeping, not_borne
from rlkernel.reference import load_reference
from rlkernel.types import Precision

SOURCE = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(8))
        self.shift = nn.Parameter(torch.zeros(8))
        self.edge = nn.Parameter(torch.zeros(()))

    def forward(self, x):
        return torch.sigmoid(x) * self.scale + self.shift + torch.log1p(-1e9 * self.edge.abs())

def get_inputs():
    return [torch.randn(4, 8)]

def get_init_inputs():
    return []
"""


@given(st.sets(st.integers(0, 15), max_size=3), st.integers(2, 16))
def test_those_that_are_not_borne_are_found(bad: set[int], count: int) -> None:
    names = [f"layers.{number}.weight" for number in range(count)]
    wrong = {name for name in names if int(name.split(".")[1]) in bad}
    tried: list[tuple[str, ...]] = []

    def bears(changed: tuple[str, ...]) -> bool:
        tried.append(changed)
        return not wrong & set(changed)

    kept = not_borne(names, bears)
    assert wrong <= set(kept)
    assert len(tried) <= MOST_TRIED
    if wrong and len(tried) < MOST_TRIED:
        assert set(kept) == wrong


def test_names_are_no_patterns() -> None:
    reference = load_reference(SOURCE, small=False)
    assert Keeping(reference, ("a[0]", "b*")).fixed[-2:] == ("a[[]0]", "b[*]")


def test_two_constants_get_other_values_beside_one_that_is_not_borne() -> None:
    rounds = [
        one for part in draw_rounds(load_reference(SOURCE, small=False), Precision.PYTORCH, "key", other=False) for one in part
    ]
    assert [bool((one.state["scale"] == 1).all()) for one in rounds if one.state] == [True, False]
    hard = rounds[2].state
    assert bool((hard["shift"] != 0).any())
    assert hard["edge"].item() == 0
    assert all(bool(torch.isfinite(t).all()) for t in rounds[2].expected.reference)
