"""Rounds: a module that is called before it is judged is called alike on both sides."""

from __future__ import annotations

import math

import pytest
import torch

from rlkernel.evaluator.judging.construction import BALANCED, Round
from rlkernel.evaluator.judging.drawing import draw_rounds
from rlkernel.evaluator.judging.errors.own_error import huge_from
from rlkernel.evaluator.judging.references.plan import AT_ONCE, Before
from rlkernel.reference import Reference, load_reference
from rlkernel.types import Precision

SOURCE = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1 if self.training else 10
        return x * self.calls

def get_inputs():
    return [torch.randn(4)]

def get_init_inputs():
    return []
"""


def drawn_rounds(reference: Reference, precision: Precision, key: str, *, other: bool, before: Before = AT_ONCE) -> list[Round]:
    """All rounds of a candidate, of one module after the other."""
    return [one for rounds in draw_rounds(reference, precision, key, other=other, before=before) for one in rounds]


def calls(before: Before) -> list[float]:
    """What the reference's buffer says in each round: the factor between input and output."""
    rounds = drawn_rounds(load_reference(SOURCE, small=False), Precision.PYTORCH, "key", other=True, before=before)
    return [float((one.expected.reference[0] / one.inputs[0]).median()) for one in rounds[:2]] + [
        float((rounds[3].expected.reference[0] / rounds[3].inputs[0]).median() - rounds[3].state["calls"])
    ]


def test_calls_before_the_rounds_are_made_in_each_mode() -> None:
    # the first module is judged twice; the last in the other mode, on top of the constant that its buffer was given
    assert calls(Before()) == pytest.approx([1.0, 2.0, 10.0], rel=1e-5)
    assert calls(Before(1)) == pytest.approx([2.0, 3.0, 11.0], rel=1e-5)
    assert calls(Before(1, 1)) == pytest.approx([2.0, 3.0, 21.0], rel=1e-5)


def test_a_round_has_the_weights_from_before_any_call_and_inputs_of_its_own() -> None:
    first, second, *_ = drawn_rounds(load_reference(SOURCE, small=False), Precision.PYTORCH, "key", other=False, before=Before(1))
    assert first.state["calls"].item() == 0.0
    assert not torch.equal(first.first_inputs[0], first.inputs[0])
    assert (first.again, second.again) == (False, True)
    assert drawn_rounds(load_reference(SOURCE, small=False), Precision.PYTORCH, "key", other=False)[0].first_inputs == []


ROWS = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        z = x + {offset}
        mean = z.mean(1, keepdim=True)
        variance = ((z * z).mean(1, keepdim=True) - mean * mean).clamp(min=0.0)
        return (z - mean) * torch.rsqrt(variance + {eps})

def get_inputs():
    return [torch.randn(32, 64)]

def get_init_inputs():
    return []
"""


def test_the_hardest_round_has_tiny_and_low_rows() -> None:
    *_, hard = drawn_rounds(load_reference(ROWS.format(offset=0.0, eps=1e-5), small=False), Precision.PYTORCH, "key", other=False)
    rows = hard.inputs[0]
    assert "rows that are tiny or below zero" in hard.expected.note
    assert bool((rows[8:12].abs().amax(1) < 0.01).all() and (rows[16:20] <= -15.9).all())
    assert hard.expected.made[0][1].norm == pytest.approx(5e-5), "bounds are as tight as ever"


def test_a_reference_that_errs_more_with_such_rows_is_judged_without_them() -> None:
    """In float32 the variance of a tiny row about 8 is off by as much as it is."""
    source = ROWS.format(offset=8.0, eps=1e-5)
    *_, hard = drawn_rounds(load_reference(source, small=False), Precision.PYTORCH, "key", other=False)
    assert "shifted and uneven" in hard.expected.note and "below zero" not in hard.expected.note
    assert float(hard.inputs[0].abs().amax(1).amin()) > 0.1


GATED = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.decay = nn.Parameter(torch.full((8,), 0.9))
        self.gain = nn.Parameter(torch.ones(8))
        self.drop = nn.Dropout(0.0)

    def forward(self, x):
        return torch.sqrt(1.0 - self.decay**2) * x * self.gain

def get_inputs():
    return [torch.randn(32, 8)]

def get_init_inputs():
    return []
"""


def test_a_constant_that_is_not_borne_keeps_its_value_in_the_other_mode_too() -> None:
    *_, hard, other = drawn_rounds(load_reference(GATED, small=False), Precision.PYTORCH, "key", other=True)
    for one in (hard, other):
        assert bool((one.state["decay"] == 0.9).all()), "sqrt(1 - 1.35^2) is NaN"
        assert bool((one.state["gain"] != 1.0).all())
        assert "parameters at other values" in one.expected.note
        assert bool(one.expected.reference[0].isfinite().all())


RESIDUAL = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(32, 32)

    def forward(self, x):
        y = self.layer(x)
        return x + torch.relu(y - y.mean(-1, keepdim=True) - 0.3)  # for most of them zero, whatever is drawn

def get_inputs():
    return [torch.randn(16, 32)]

def get_init_inputs():
    return []
"""


def test_what_is_added_to_a_product_does_not_make_usual_values_huge() -> None:
    # Out of half precision's range x is 2^-26 times as large: where relu gives zero, the output is about 1e-8, elsewhere about 1.
    *_, led = drawn_rounds(load_reference(RESIDUAL, small=False), Precision.PYTORCH, "key", other=False)
    assert BALANCED in led.expected.note
    (output,), (allowed,) = led.expected.reference, led.expected.allowed
    assert float(output.abs().median()) < 1e-3 < 0.1 < float(output.max())
    assert huge_from(output) < math.inf == allowed.huge
    assert 5e-5 < allowed.norm < 2e-2, "as much as tf32 misses by"


def test_a_module_is_gone_before_the_next_is_made() -> None:
    """With weights of gigabytes, one module at a time takes memory."""
    source = RESIDUAL.replace("import torch\n", "import torch, weakref\nALIVE = weakref.WeakSet()\n", 1)
    reference = load_reference(source.replace("__init__()", "__init__(); ALIVE.add(self)"), small=False)
    alive = reference.namespace["ALIVE"]
    seen = [(len(rounds), len(alive)) for rounds in draw_rounds(reference, Precision.PYTORCH, "key", other=False)]
    assert seen == [(2, 0), (1, 0), (1, 0)]


GATHERED = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x, table):
        return table[torch.softmax(x, -1).topk(8)[1]]

def get_inputs():
    return [torch.randn(512, 64), torch.randn(64, 8)]

def get_init_inputs():
    return []
"""


def test_rows_whose_places_the_reference_cannot_tell_are_not_judged() -> None:
    """What is gathered at such places jumps, so that the reference would be its own measure."""
    rounds = drawn_rounds(load_reference(GATHERED, small=False), Precision.STRICT, "key", other=False)
    assert [round.own_measures for round in rounds] == [frozenset()] * len(rounds)
    assert "tiny" not in rounds[2].expected.note and "uneven" in rounds[2].expected.note


LOUD = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return torch.exp(x * x / {scale})

def get_inputs():
    return [torch.randn(64, 32).clamp(-3, 3)]

def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(
    ("scale", "note", "least"),
    [(14.0, "inputs scaled by 8", 8.9), (2.0, "inputs scaled by 3", 8.9), (0.5, "inputs scaled by 1.5", 4.4), (0.25, "", 2.9)],
)
def test_inputs_are_less_large_where_eight_times_are_not_borne(scale: float, note: str, least: float) -> None:
    """An output may be e to the 44.3, which is 2 to the 64. Inputs are 24, 9, 4.5 or 3 at most: 576 / 14 and 81 / 2 are 41, and
    576 / 2 is 288; 20.25 / 0.5 is 41, and 81 / 0.5 is 162; 9 / 0.25 is 36, and 20.25 / 0.25 is 81."""
    _, _, hard, *_ = drawn_rounds(load_reference(LOUD.format(scale=scale), small=False), Precision.PYTORCH, "key", other=False)
    assert hard.expected.note.startswith(f" ({note}") if note else "scaled" not in hard.expected.note
    assert float(hard.inputs[0].abs().max()) > least


ZERO_GATE = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.gate = nn.Linear(64, 64), nn.Parameter(torch.zeros(64))
        self.to(torch.bfloat16)

    def forward(self, x):
        return x + self.gate * torch.exp(self.linear(x).cumsum(-1))

def get_inputs():
    return [torch.randn(64, 64, dtype=torch.bfloat16)]

def get_init_inputs():
    return []
"""


def test_a_branch_behind_a_gate_of_zeros_is_shown_although_it_errs_by_more_than_what_passes_it_by() -> None:
    """The gate stayed zero in every round, so that whatever stood behind it was right."""
    rounds = drawn_rounds(load_reference(ZERO_GATE, small=False), Precision.PYTORCH, "key", other=False)
    assert max(float(one.state["gate"].abs().max()) for one in rounds if one.state) > 0.25


MASKED = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return torch.exp(4 * x).masked_fill(torch.ones(64, 64, dtype=torch.bool).triu(1), torch.finfo(torch.float32).min)

def get_inputs():
    return [torch.randn(64, 64)]

def get_init_inputs():
    return []
"""


def test_a_mask_filled_with_the_lowest_number_makes_no_infinity_bearable() -> None:
    for one in drawn_rounds(load_reference(MASKED, small=False), Precision.PYTORCH, "key", other=False):
        assert bool(torch.isfinite(one.expected.reference[0]).all())


DELTA_RULE = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, q, k, v):
        state, outputs = k.new_zeros(k.shape[1], v.shape[1]), []
        for t in range(k.shape[0]):
            state = state + torch.outer(k[t], v[t] - k[t] @ state)
            outputs.append(q[t] @ state)
        return torch.stack(outputs).bfloat16()

def get_inputs():
    return [torch.randn(96, 32) * 0.2, torch.randn(96, 32) * 0.2, torch.randn(96, 8)]

def get_init_inputs():
    return []
"""


def test_what_recurs_is_not_scaled_to_where_it_explodes() -> None:
    """A step takes (k.k - 1) times what lies along k: k.k is 32 * 0.04 = 1.3, and 12 where keys are three times as long."""
    rounds = drawn_rounds(load_reference(DELTA_RULE, small=False), Precision.PYTORCH, "key", other=False)
    sizes = [float(one.expected.reference[0].double().abs().max()) for one in rounds]
    assert max(sizes) < 1e6
