"""What calls of forward have in common: preparation by the first, what each leaves to the next, and what is no steady work."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from rlkernel.evaluator.program.replay import Replay
from rlkernel.evaluator.program.schema import Program
from rlkernel.evaluator.trace.candidate import INCONSISTENT, Verdict
from rlkernel.evaluator.trace.programs import AT_EACH_CALL
from tests.evaluator.trace.test_candidate import program, traced

X = torch.tensor([[1.0, -2.0, 3.0], [0.5, 0.25, -0.125]])
LAZY = "if self.kept is None:\n    self.kept = {}\n"


def answers(made: Program, *inputs: torch.Tensor, first: torch.Tensor = X, weight: float | None = None) -> list[Any]:
    """What one construction gives for inputs in a row, as nested lists."""
    replay = Replay(made, torch.device("cpu"), lambda *call: None)
    state = replay.init([], 0)
    if weight is not None:
        state["w"].fill_(weight)
    replay.prepare([first], 0)
    return [replay.forward([given], 0).tolist() for given in inputs]


def test_calls_that_do_the_same_prepare_nothing() -> None:
    made = program("return x + 1")
    assert (made.prepare, made.prepare_inputs, made.carried) == ((), (), {})


def test_the_first_call_prepares_from_the_weights_of_each_construction() -> None:
    made = program(
        LAZY.format("self.w * 2") + "return x * self.kept", init="self.kept = None; self.w = nn.Parameter(torch.ones(3))"
    )
    assert len(made.prepare_inputs) == 1
    assert len(made.forward) == 1
    assert answers(made, X, weight=5.0) == [(X * 10).tolist()]
    assert answers(made, X, weight=-1.0) == [(X * -2).tolist()]


def test_what_is_kept_of_the_first_input_is_not_of_the_judged_one() -> None:
    made = program(LAZY.format("torch.relu(x)") + "return self.kept + 0 * x", init="self.kept = None")
    assert answers(made, X, first=torch.full_like(X, 7.0)) == [torch.full_like(X, 7.0).tolist()]


def test_each_call_leaves_its_state_to_the_next() -> None:
    made = program("self.m = self.m * 0.5 + x.mean()\nreturn x * 0 + self.m", init="self.register_buffer('m', torch.zeros(()))")
    (old,) = made.state.values()
    assert list(made.carried) == [old]
    assert made.prepare_inputs == ()
    ones = torch.ones(2, 3)
    assert [row[0][0] for row in answers(made, ones, 3 * ones, 0 * ones)] == [1.0, 3.5, 1.75]  # 0 / 2 + 1, 1 / 2 + 3, 3.5 / 2
    replay = Replay(made, torch.device("cpu"), lambda *call: None)
    replay.init([], 0)
    replay.forward([ones], 0)
    assert replay.state()["m"].item() == 1.0


@pytest.mark.parametrize(
    ("init", "forward"),
    [
        ("self.n = 0", "self.n += 1\nreturn x * self.n"),
        ("self.n = 0", "self.n += 1\nreturn x * (self.n % 2)"),
        ("self.n = 0", "self.n += 1\nreturn x * 2 if self.n == 2 else x"),
        ("self.n = 0", "self.n += 1\nreturn x * 2 if self.n == 3 else x"),
        ("self.n = 0", "self.n += 1\nreturn x * 2 if self.n == 4 else x"),
        ("self.b = [torch.zeros(2, 3), torch.zeros(2, 3)]", "self.b.reverse()\nreturn self.b[0].to(x.device).copy_(x)"),
        ("self.kept = None", LAZY.format("torch.relu(x)") + "return self.kept"),
    ],
)
def test_work_that_changes_from_call_to_call_is_inconsistent(init: str, forward: str) -> None:
    with pytest.raises(Verdict) as refused:
        traced(forward, init=init)
    assert refused.value.status == "inconsistent"
    assert refused.value.detail in (INCONSISTENT, f"after its first call forward does not look at its inputs{AT_EACH_CALL}")


def test_the_other_mode_may_prepare_for_itself() -> None:
    forward = (
        "k = self.kept.get(self.training)\nif k is None:\n"
        "    k = self.kept[self.training] = self.w * (2 if self.training else 3)\nreturn x * k"
    )
    found = traced(forward, init="self.kept = {}; self.w = nn.Parameter(torch.ones(3))")
    assert found.calls_before == (1, 1)
    assert found.other is not None
    assert answers(found.program, X, weight=5.0) == [(X * 10).tolist()]
    assert answers(found.other, X, weight=5.0) == [(X * 15).tolist()]


def test_what_the_first_call_keeps_is_bounded() -> None:
    with pytest.raises(Verdict) as refused:
        program(LAZY.format("torch.zeros(1 << 23, device=x.device)") + "return x + self.kept[0]", init="self.kept = None")
    # 2**23 floats; four times the 24 bytes of the input and of the output, and 2**20 bytes
    assert refused.value.detail == (
        "the first call of forward keeps 33554432 bytes; it may keep 1048768, 4 times what parameters, inputs and outputs take "
        "and 1 MiB"
    )
