"""A product of which every element is needed takes all of its arithmetic; what may hide a part of it takes less."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from rlkernel.evaluator.devices import PROFILES
from rlkernel.evaluator.judging.costs.least_work import LEAST, WHOLE, may_hide
from rlkernel.evaluator.judging.preparing import prepare
from rlkernel.types import Precision

SOURCE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.b = nn.Parameter(torch.randn(8, 8))
        {mask}

    def forward(self, x):
        return {forward}

def get_inputs():
    return [torch.randn(8, 8)]

def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(
    ("forward", "share"),
    [
        ("x @ self.b", WHOLE),
        ("torch.relu(self.fc(x)) * 2", WHOLE),
        ("torch.softmax(x.t() @ self.b.t(), dim=-1)", WHOLE),
        ("torch.bmm(x[None], self.b.unsqueeze(0))", WHOLE),
        ("torch.relu(x @ self.b) @ self.fc.weight", WHOLE),
        ("torch.softmax(x @ self.b * 0.5, dim=-1) @ self.fc.weight + x", WHOLE),
        ("torch.tanh(self.fc(x)) @ self.b + self.fc(x)", LEAST),
        ("x @ self.b + x @ self.fc.weight", LEAST),
        ("torch.relu(self.fc(x)) @ torch.relu(self.fc(x)).t()", LEAST),
        ("torch.relu(x) @ x", LEAST),
        ("self.fc(x) @ self.b", LEAST),
        ("torch.tril(x @ self.b)", LEAST),
        ("torch.tril(x) @ self.b", LEAST),
        ("(x @ self.b).sum(1)", LEAST),
        ("(x @ self.b)[:, 0]", LEAST),
        ("x @ x.t()", LEAST),
        ("x @ self.b @ self.b", LEAST),
        ("(x @ self.b).masked_fill(x > 0, 0.0)", LEAST),
        ("torch.where(x > 0, x @ self.b, 0.0)", LEAST),
    ],
)
def test_the_share_of_a_product_that_is_needed(forward: str, share: float) -> None:
    source = SOURCE.replace("{forward}", forward).replace("{mask}", "")
    assert prepare(source, "p", PROFILES["h200"], Precision.PYTORCH).costs.least_share == share


@pytest.mark.parametrize(
    ("mask", "share"),
    [
        ("torch.full((8, 8), float('-inf')).triu(1)", LEAST),
        ("torch.full((8, 8), -1e9).triu(1)", LEAST),
        ("torch.ones(8, 8).tril()", LEAST),
        ("torch.randn(8, 8)", WHOLE),
        ("torch.zeros(8, 8)", WHOLE),
    ],
)
def test_a_mask_that_is_given_hides_by_its_values(mask: str, share: float) -> None:
    """A causal mask that is added, and one of ones that is multiplied by; a table of positions hides nothing."""
    word = "*" if "ones" in mask else "+"
    forward = f"torch.softmax(x @ self.b {word} self.mask, dim=-1) @ self.fc.weight"
    source = SOURCE.replace("{forward}", forward).replace("{mask}", f"self.register_buffer('mask', {mask})")
    assert prepare(source, "p", PROFILES["h200"], Precision.PYTORCH).costs.least_share == share


def test_a_part_of_a_tensor_hides_from_a_sixteenth_on() -> None:
    """Of 32 elements, two zeros are a sixteenth; one number is no mask."""
    one, two = torch.ones(32), torch.ones(32)
    one[:1], two[:2] = 0.0, 0.0
    tensors = [one, two, torch.zeros(1), two > 0]
    assert [may_hide([tensor], [tensor]) for tensor in tensors] == [False, True, False, True]


def test_float8_is_looked_at_as_any_other_dtype() -> None:
    """Torch compares no float8. 4 of 32 elements, an eighth, are zeros in both draws, which is more than a sixteenth."""
    one = torch.ones(32)
    one[:4] = 0.0
    tensors = [one.to(torch.float8_e4m3fn), torch.ones(32).to(torch.float8_e5m2)]
    assert [may_hide([tensor], [tensor]) for tensor in tensors] == [True, False]


def one_hot(generator: torch.Generator) -> torch.Tensor:
    return torch.nn.functional.one_hot(torch.randint(0, 200, (300,), generator=generator), 200).float()


def dropped(generator: torch.Generator) -> torch.Tensor:
    return torch.relu(torch.randn(64, 96, generator=generator))


@pytest.mark.parametrize(
    ("draw", "hides"),
    [
        (one_hot, True),
        (lambda generator: (torch.rand(64, 64, generator=generator) < 0.1).float(), False),
        (dropped, False),
        (lambda generator: torch.randn(16, 24, generator=generator).relu(), False),
        (lambda generator: torch.where(torch.rand(64, 64, generator=generator) < 0.9, float("-inf"), 0.0), False),
        (lambda generator: torch.randn(64, 96, generator=generator).tril(), True),
        (lambda generator: dropped(generator).tril(), True),
        (lambda generator: dropped(generator)[:48, :48].triu(), True),
        (lambda generator: torch.full((8, 8), float("-inf")).triu(1), True),
        (lambda generator: torch.zeros(64), False),
    ],
)
def test_zeros_that_lie_elsewhere_in_each_draw_hide_nothing(draw: Callable[[torch.Generator], torch.Tensor], hides: bool) -> None:
    found = set()
    for seed in range(0, 40, 2):
        first, second = (draw(torch.Generator().manual_seed(number)) for number in (seed, seed + 1))
        found.add(may_hide([torch.ones(4), first], [torch.ones(4), second]))
    assert found == {hides}


def test_one_hot_rows_leave_nothing_of_the_only_product() -> None:
    rows = "torch.nn.functional.one_hot(torch.randint(0, 64, (24,)), 64).float()"
    text = (
        "import torch\nimport torch.nn as nn\n\nclass Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.w, self.v = nn.Parameter(torch.randn(64, 48)), nn.Parameter(torch.randn(48, 48))\n\n"
        "    def forward(self, x):\n        return {forward}\n\n\ndef get_inputs():\n    return [{rows}]\n\n\n"
        "def get_init_inputs():\n    return []\n"
    )

    def share(forward: str, rows: str = rows) -> float:
        source = text.replace("{forward}", forward).replace("{rows}", rows)
        return prepare(source, "p", PROFILES["h200"], Precision.PYTORCH).costs.least_share

    assert share("x @ self.w") == 0.0
    assert share("torch.relu(x @ self.w) @ self.v") == LEAST, "another product is needed whole, which is not told apart"
    assert share("x @ self.w", "torch.randn(24, 64)") == WHOLE
