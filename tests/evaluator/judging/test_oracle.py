"""What the oracle gives to a candidate: arguments that the reference's own model was made of, and floors of the right peak."""

from __future__ import annotations

from typing import TypeVar

import pytest
import torch

from rlkernel.errors import BrokenReference
from rlkernel.evaluator import wire
from rlkernel.evaluator.devices import H200
from rlkernel.evaluator.draws import key_of
from rlkernel.evaluator.judging.oracle import Oracle, prepare
from rlkernel.evaluator.messages import codec
from rlkernel.evaluator.messages.oracle import About, Brief, DrawRounds, Prepare, Rounds
from rlkernel.evaluator.pool import Pool
from rlkernel.reference import load_reference
from rlkernel.types import Problem, Status

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
PRODUCT = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return x @ x

def get_inputs():
    return [torch.randn(8192, 8192)]

def get_init_inputs():
    return []

SMALL = {}
"""


def about(source: str, *, tf32: bool = False) -> About:
    return About("mine/x", source, "h200", tf32)


def ask(oracle: Oracle, question: Prepare | DrawRounds, answer: type[T]) -> tuple[T, bytes]:
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


@pytest.mark.anyio
async def test_a_candidate_that_keeps_a_random_init_input_as_it_is_is_correct(pool: Pool) -> None:
    problem = Problem("mine/attribute", 1, "train", ATTRIBUTE)
    result = await pool.evaluate(problem, HONEST)
    assert result.status is Status.CORRECT, result.detail


def test_the_floor_of_a_float32_product_follows_tf32() -> None:
    oracle = Oracle()
    floors = []
    for tf32 in (False, True):
        brief, _ = ask(oracle, Prepare(about(PRODUCT, tf32=tf32)), Brief)
        floors.append(brief.floor_us)
    flops = 2 * 8192**3
    # three products of half precision at 7.9e8 flops/us each; one of tf32 at 4.0e8
    assert floors == [pytest.approx(0.9 * flops * 3 / 7.9e8), pytest.approx(0.9 * flops / 4.0e8)]


@pytest.mark.parametrize(
    ("function", "value"),
    [
        ("get_inputs", "torch.randn(16, 64), float(torch.default_generator.initial_seed())"),
        ("get_inputs", "torch.randn(16, 32 + 32 * torch.default_generator.initial_seed())"),
        ("get_inputs", "torch.randn(16, 64).to((torch.float32, torch.float16)[torch.default_generator.initial_seed()])"),
        ("get_init_inputs", "torch.randn(64), torch.default_generator.initial_seed()"),
    ],
)
def test_arguments_that_vary_with_the_seed_beyond_tensor_values_are_refused(function: str, value: str) -> None:
    before = {"get_inputs": "torch.randn(16, 64)", "get_init_inputs": "torch.randn(64)"}[function]
    source = ATTRIBUTE.replace("forward(self, x)", "forward(self, x, *rest)").replace("self, scale)", "self, scale, *rest)")
    source = source.replace(f"return [{before}]", f"return [{value}]")
    with pytest.raises(BrokenReference, match=rf"^mine/x: {function} gives other numbers, shapes or dtypes with another seed"):
        prepare(source, "mine/x", H200, tf32=False)


def test_a_reference_that_fails_without_a_word_is_named() -> None:
    source = ATTRIBUTE.replace("def forward(self, x):", "def forward(self, x):\n        assert False")
    assert source != ATTRIBUTE
    with pytest.raises(BrokenReference, match=r"^mine/x: .*AssertionError"):
        prepare(source, "mine/x", H200, tf32=False)
