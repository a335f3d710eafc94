"""What the oracle gives to a candidate: the arguments of the reference's own model; and how it compares what comes back."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import pytest
import torch

from rlkernel.evaluator import wire
from rlkernel.evaluator.draws import key_of
from rlkernel.evaluator.judging.oracle import Oracle
from rlkernel.evaluator.messages import codec
from rlkernel.evaluator.messages.children import RoundOutputs
from rlkernel.evaluator.messages.endings import Broken
from rlkernel.evaluator.messages.oracle import About, Brief, Compare, Compared, DrawMore, DrawRounds, Fit, Fits, Prepare, Rounds
from rlkernel.evaluator.pool import Pool
from rlkernel.reference import load_reference
from rlkernel.types import Precision, Problem, Status
from tests.evaluator.judging.test_drawing import drawn_rounds

T = TypeVar("T")
ATTRIBUTE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x):
        return x * self.scale

def get_inputs():
    return [torch.randn(16, 64)]

def get_init_inputs():
    return [torch.randn(64)]
"""
HONEST = """
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def scaled(x, scale, y, COLS: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, COLS)
    tl.store(y + row * COLS + column, tl.load(x + row * COLS + column) * tl.load(scale + column))

class ModelNew(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x):
        y = torch.empty_like(x)
        scaled[(x.shape[0],)](x, self.scale, y, COLS=x.shape[1])
        return y
"""


def about(source: str, precision: Precision = Precision.PYTORCH) -> About:
    return About("mine/x", source, "h200", precision)


def ask(oracle: Oracle, question: Fit | Prepare | DrawRounds | DrawMore, answer: type[T]) -> tuple[T, bytes]:
    """One question to an oracle, over the wire and back."""
    message = oracle.handle(codec.to_header(question), b"")
    size, _ = wire.sizes(message[: wire.PREFIX.size])
    start = wire.PREFIX.size + size
    return codec.unpack(wire.parse(message[wire.PREFIX.size : start]), answer), message[start:]


def test_every_round_comes_with_the_init_inputs_of_its_own_model() -> None:
    oracle = Oracle()
    ask(oracle, Prepare(about(ATTRIBUTE)), Brief)
    rounds, body = ask(oracle, DrawRounds(about(ATTRIBUTE), key_of(None), other=False), Rounds)
    drawn = []
    for place, one in enumerate(rounds.rounds):
        assert one.again == (place == 1), "the second round calls the module of the first one again"
        (span,) = one.init_inputs
        drawn.append(wire.tensor(span, body))
        ((want,), _) = load_reference(ATTRIBUTE, small=True).init_inputs(one.init_seed)
        assert torch.equal(drawn[-1], want)
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


def test_rounds_of_large_modules_come_in_a_message_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rounds as in one message; what is compared are those of the last one. For who is doubted the first module comes
    alone."""
    question = DrawRounds(about(LINEAR), key_of(1, "linear"), other=False)
    oracle = Oracle()
    ask(oracle, Prepare(about(LINEAR)), Brief)
    whole, _ = ask(oracle, question, Rounds)
    assert ([one.again for one in whole.rounds], whole.more) == ([False, True, False, False], False)
    doubted, _ = ask(oracle, replace(question, doubted=True), Rounds)
    assert ([one.again for one in doubted.rounds], doubted.more) == ([False, True], True)
    others, _ = ask(oracle, DrawMore(), Rounds)
    assert ([one.again for one in others.rounds], others.more) == ([False, False], False)
    monkeypatch.setattr("rlkernel.evaluator.judging.oracle.ENOUGH", 1)
    parts = [ask(oracle, question, Rounds)[0]]
    while parts[-1].more:
        parts.append(ask(oracle, DrawMore(), Rounds)[0])
        assert len(oracle._expected) == len(parts[-1].rounds)
    assert [len(part.rounds) for part in parts] == [2, 1, 1, 0]
    drawn = [one for part in parts for one in part.rounds]
    assert [one.forward_seed for one in drawn] == [one.forward_seed for one in whole.rounds]
    assert [bool(one.state) for one in drawn] == [True, False, True, True], "weights are sent once for a module"


@pytest.mark.anyio
async def test_a_candidate_that_keeps_a_random_init_input_as_it_is_is_correct(pool: Pool) -> None:
    problem = Problem("mine/attribute", 1, "train", ATTRIBUTE)
    result = await pool.evaluate(problem, HONEST)
    assert result.status is Status.CORRECT, result.detail


LINEAR = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(48, 40)

    def forward(self, x):
        return torch.relu(self.linear(x))

def get_inputs():
    return [torch.randn(32, 48)]

def get_init_inputs():
    return []
"""


def test_a_float32_product_has_a_round_out_of_half_precisions_range_where_tf32_may_be_used() -> None:
    drawn = {
        precision: drawn_rounds(load_reference(LINEAR, small=True), precision, key_of(1, "linear"), other=False)
        for precision in Precision
    }
    assert [len(rounds) for rounds in drawn.values()] == [4, 3, 3]
    last = drawn[Precision.PYTORCH][-1]
    assert last.expected.note == " (operands out of half precision's range)"
    assert float(last.inputs[0].abs().max()) < 2.0**-20 and float(last.state["linear.weight"].abs().max()) > 2.0**18
    assert [one.expected.ordinary for one in drawn[Precision.PYTORCH]] == [True, True, False, False]
    bounds = {precision: rounds[0].expected.allowed[0].norm for precision, rounds in drawn.items()}
    assert bounds[Precision.STRICT] == 5e-5 and bounds[Precision.TF32] == 2e-3 and 5e-4 < bounds[Precision.PYTORCH] < 1.5e-3


@pytest.mark.parametrize(("off", "matches", "close"), [(0.0, True, "1e-4"), (5e-3, False, "1e-2"), (1.0, False, "no")])
def test_kernelbenchs_comparison_is_told_whatever_the_verdict(off: float, matches: bool, close: str) -> None:
    oracle = Oracle()
    ask(oracle, Prepare(about(LINEAR)), Brief)
    ask(oracle, DrawRounds(about(LINEAR), other=False, key=key_of(1, "linear")), Rounds)
    body = wire.Body()
    rounds = []
    for expected in oracle._expected:
        (output,) = expected.reference
        inputs = tuple(body.add(t) for t in expected.inputs)
        rounds.append(RoundOutputs({"tensor": 0}, (body.add(output + off),), (False,), (False,), inputs, {}))
    answer = oracle._compare(Compare(tuple(rounds)), b"".join(body.parts))
    assert isinstance(answer, Compared)
    assert (answer.matches, answer.close) == (matches, close)


def test_counters_of_batches_may_be_left_alone_and_other_whole_numbers_not() -> None:
    source = LINEAR.replace(
        "self.linear = nn.Linear(48, 40)", "self.register_buffer('calls', torch.zeros((), dtype=torch.int64))"
    )
    source = source.replace("return torch.relu(self.linear(x))", "self.calls += 1\n        return torch.relu(x)")
    (first, *_) = drawn_rounds(load_reference(source, small=True), Precision.PYTORCH, key_of(1, "source"), other=False)
    assert {name: int(value) for name, (value, _) in first.expected.state.items()} == {"calls": 1}
    norm = LINEAR.replace("nn.Linear(48, 40)", "nn.BatchNorm1d(48)")
    (first, *_) = drawn_rounds(load_reference(norm, small=True), Precision.PYTORCH, key_of(1, "norm"), other=False)
    assert set(first.expected.state) == {"linear.running_mean", "linear.running_var"}


@pytest.mark.parametrize(
    ("small", "told"),
    [
        ("None", 'SMALL on line 3 is not a literal dict such as {"N": 64}'),
        ('{"ROWS": 0}', "SMALL on line 3 gives ROWS = 0, which is no size; use a whole number of at least 1"),
    ],
)
def test_a_broken_small_is_told_when_the_problem_is_prepared_and_not_when_it_is_fitted(small: str, told: str) -> None:
    source = f"ROWS = 16\n\nSMALL = {small}\n" + ATTRIBUTE.replace("(16, 64)", "(ROWS, 64)")
    oracle, told_of = Oracle(), replace(about(source), name="mine")
    assert ask(oracle, Fit(told_of, None, 0), Fits)[0] == Fits(source, {})
    assert ask(oracle, Prepare(told_of), Broken)[0] == Broken(f"mine: {told}")


@pytest.mark.parametrize("raised", ["SystemExit(0)", "KeyboardInterrupt(0)"])
def test_what_would_end_the_process_is_told_with_its_line(raised: str) -> None:
    source = ATTRIBUTE.replace("return x * self.scale", f"raise {raised}")
    question = Fit(About("p", source, "h200", "tf32"), None, 0)
    answer = codec.unpack(wire.parse(Oracle().handle(codec.to_header(question), b"")[wire.PREFIX.size :]), Broken)
    assert answer.why == f"p: it raised {raised.partition('(')[0]} on line 11: 0"


WIDE = "return x * torch.unique(x.new_ones(2, 65), dim=0).numel()"


@pytest.mark.parametrize(
    ("forward", "told"),
    [
        ("raise RuntimeError('boom')", "p: forward raises RuntimeError on line 11: boom (on tensors without data)"),
        (
            "return x * torch.unique(x.new_ones(2, 65), dim=0).numel()",
            "(on tensors without data); what a reference needs to know before it runs must ",
        ),
        (
            "return x * torch.empty(1 << 40).sum()",
            ": a tensor of 4,398 GB, and an h200 has 141 GB (on tensors without data); make",
        ),
        ("def forward(self)", "were given (on tensors without data); forward is given what get_inputs returns"),
    ],
)
def test_a_broken_forward_is_told_with_its_line_and_what_to_change(forward: str, told: str) -> None:
    at = "def forward(self, x)" if forward.startswith("def") else "return x * self.scale"
    assert told in why_broken(ATTRIBUTE.replace(at, forward))


def why_broken(source: str) -> str:
    """Why the oracle finds no sizes for a file."""
    question = Fit(About("p", source, "h200", "tf32"), None, 0)
    answer = codec.unpack(wire.parse(Oracle().handle(codec.to_header(question), b"")[wire.PREFIX.size :]), Broken)
    return str(answer.why)


def test_a_name_with_values_in_it_is_no_question_for_a_value() -> None:
    operator = "torch.library.define('told_of::values', '(Tensor x) -> Tensor'); return torch.ops.told_of.values(x)"
    assert why_broken(ATTRIBUTE.replace("return x * self.scale", operator)) == (
        "p: forward raises Untraceable on line 11: operator told_of::values has no implementation in Python for CUDA (on tensors "
        "without data)"
    )
