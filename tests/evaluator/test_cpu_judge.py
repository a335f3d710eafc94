"""One judgement without a GPU: what is found of rounds that come in several messages is one verdict."""

from __future__ import annotations

from typing import Any

import pytest

from rlkernel.evaluator import wire
from rlkernel.evaluator.clock import Clock
from rlkernel.evaluator.cpu_judge import AtFull, CpuJudge, together
from rlkernel.evaluator.judging.oracle import Oracle
from rlkernel.evaluator.messages.oracle import Compared
from rlkernel.evaluator.pool import Pool
from rlkernel.types import Closeness, Evaluation, Problem, Status

TABLE = """
import torch
from torch import nn

N = 1 << 10
SMALL = {"N": 64}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.empty(1 << 12).uniform_())
        self.gain = nn.Parameter(torch.ones(()))

    def forward(self, x):
        return x * self.gain + self.table[:N]

def get_inputs():
    return [torch.rand(N)]

def get_init_inputs():
    return []
"""
KERNEL = """
import torch, triton
from torch import nn
import triton.language as tl

@triton.jit
def scaled(x, gain, table, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, i < n) * GAIN + tl.load(table + i, i < n), i < n)

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.empty(1 << 12).uniform_())
        self.gain = nn.Parameter(torch.ones(()))

    def forward(self, x):
        y = torch.empty_like(x)
        scaled[(triton.cdiv(x.numel(), 64),)](x, self.gain, self.table, y, x.numel(), BLOCK=64)
        return y
"""


class Near:
    """An oracle in this very process, as a lane talks to it."""

    def __init__(self) -> None:
        self.oracle = Oracle()
        self.asked: list[str] = []

    async def ask(self, message: bytes, body: bytes = b"") -> tuple[dict[str, Any], bytes]:
        header = wire.parse(message[wire.PREFIX.size :])
        self.asked.append(header["message"])
        answer = self.oracle.handle(header, body)
        size, _ = wire.sizes(answer[: wire.PREFIX.size])
        start = wire.PREFIX.size + size
        return wire.parse(answer[wire.PREFIX.size : start]), answer[start:]


@pytest.mark.anyio
async def test_rounds_that_come_in_several_messages_are_one_judgement(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """That the gain is one by chance shows with the second module alone, in the second message; no third is asked for."""
    monkeypatch.setattr("rlkernel.evaluator.judging.oracle.ENOUGH", 1)
    problem, judge, near = Problem("table", 1, "train", TABLE), CpuJudge(pool._stages), Near()
    oracle: Any = near

    async def judged(code: str) -> tuple[Evaluation, list[str]]:
        near.asked.clear()
        found = await judge.judge(oracle, problem, code, Clock(), None, AtFull())
        return found.evaluation, [question for question in near.asked if question != "Prepare"]

    right, asked = await judged(KERNEL.replace("GAIN", "tl.load(gain)"))
    assert right.status is Status.CORRECT, right.detail
    assert asked == ["DrawRounds", "Compare", "DrawMore", "Compare", "DrawMore"], "the last of which has found none"
    wrong, asked = await judged(KERNEL.replace("GAIN", "1.0"))
    assert wrong.status is Status.INCORRECT
    assert wrong.detail.endswith("; gain is ignored"), wrong.detail
    assert asked == ["DrawRounds", "Compare", "DrawMore", "Compare"]


def test_of_two_parts_the_larger_error_and_the_lesser_closeness_are_told() -> None:
    first = Compared(True, "", 2e-3, False, Closeness.LOOSE)
    assert together(first, Compared(True, "", 1e-3, False, Closeness.TIGHT)) == first
    missed = Compared(False, "output is wrong", 0.5, True)
    assert together(first, missed) == Compared(False, "output is wrong", 0.5, True, Closeness.LOOSE)
