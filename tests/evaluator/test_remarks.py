"""What is told beside a verdict: a reference that constants match, one that no card holds, configurations that nobody has run,
and sizes that would decide what is open."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlkernel.evaluator.judging.noted import Open, noting
from rlkernel.evaluator.judging.undecided import Undecided, why_undecided
from rlkernel.evaluator.pool import Pool
from rlkernel.evaluator.program.schema import TensorSpec
from rlkernel.evaluator.program.variant import Specs
from rlkernel.evaluator.remarks import to_decide
from rlkernel.reference_text import apply_small, small_of
from rlkernel.types import Evaluation, Problem, Status

REFERENCE = """
import torch
COLS = 96
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.log(-x.abs() - 1)
def get_inputs():
    return [torch.randn(16, COLS)]
"""
KERNEL = """
import torch
import triton
import triton.language as tl

@triton.jit
def filled(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at, mask=at < n)
    tl.store(y + at, tl.log(-tl.abs(values) - 1), mask=at < n)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        filled[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y
"""
SOUND = ("torch.log(-x.abs() - 1)", "tl.log(-tl.abs(values) - 1)"), ("x.relu()", "tl.maximum(values, 0.0)")


@pytest.mark.parametrize(
    ("columns", "sound", "told"),
    [
        (
            96,
            False,
            ["p: output 0 holds NaN or Inf; a verdict on such a reference says little, and a training set leaves it out"],
        ),
        (96, True, []),
        (
            1_200_000_000,  # 77 GB each
            True,
            ["p: its arguments take 154 GB at full shape, and the card (h200) has 141 GB: make its sizes smaller"],
        ),
    ],
)
@pytest.mark.anyio
async def test_a_reference_that_says_little_is_remarked_upon(pool: Pool, columns: int, sound: bool, told: list[str]) -> None:
    source, code = REFERENCE.replace("COLS = 96", f"COLS = {columns}"), KERNEL
    if columns > 96:
        one = "torch.randn(16, COLS)"
        source, code = (text.replace("self, x", "self, x, *more").replace(one, f"{one}, {one}") for text in (source, code))
    if sound:
        source, code = source.replace(SOUND[0][0], SOUND[1][0]), code.replace(SOUND[0][1], SOUND[1][1])
    problem = Problem("p", 1, "validation", source)
    result = await pool.evaluate(problem, code)
    assert result.status is Status.CORRECT
    assert await pool.doubts(problem) == told


async def judged(pool: Pool, problem: Problem, code: str) -> tuple[Evaluation, list[str]]:
    """A candidate's verdict, and what a person is told beside it."""
    with noting() as noted:
        result = await pool.evaluate(problem, code)
    return result, pool.remarks(problem, result, noted)


TUNED = """
@triton.autotune(configs=[triton.Config({"BLOCK": block}) for block in BLOCKS], key=["n"])
@triton.jit"""


def tuned(*blocks: int) -> tuple[str, str]:
    """A sound reference, and its kernel with an autotuner that chooses among these blocks, or with none."""
    source, code = (text.replace(*words) for text, words in zip((REFERENCE, KERNEL), zip(*SOUND, strict=True), strict=True))
    if blocks:
        code = code.replace("\n@triton.jit", TUNED.replace("BLOCKS", repr(blocks))).replace(", BLOCK=1024)", ")")
        code = code.replace("(triton.cdiv(x.numel(), 1024),)", 'lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)')
    return source, code


OTHERS = "configurations was run, the first by modelled time that compiles; a GPU judges all"


@pytest.mark.parametrize(
    ("blocks", "told"),
    [
        ((512, 1024, 2048), [f"filled: one of its 3 {OTHERS}"]),
        ((1024,), []),
        ((), []),
    ],
)  # fmt: skip
@pytest.mark.anyio
async def test_configurations_that_nobody_has_run_are_remarked_upon(pool: Pool, blocks: tuple[int, ...], told: list[str]) -> None:
    source, code = tuned(*blocks)
    problem = Problem("p", 1, "validation", source)
    result, remarks = await judged(pool, problem, code)
    assert result.status is Status.CORRECT, result.detail
    assert remarks == told


MEAN = """
import torch
ROWS, COLS = 1024, 2048
class Model(torch.nn.Module):
    def forward(self, x):
        return x.square().mean() * x[:, 0]
def get_inputs():
    return [torch.randn(ROWS, COLS)]
"""
MEAN_OF_PARTS = """
import torch
import triton
import triton.language as tl

@triton.jit
def squares(x, part, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at, mask=at < n, other=0.0)
    tl.store(part + tl.program_id(0), tl.sum(values * values))

@triton.jit
def mean(part, out, parts, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, parts, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(part + at, mask=at < parts, other=0.0)
    tl.store(out, tl.sum(total) / n)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        parts = triton.cdiv(x.numel(), 4096)
        part, out = torch.empty(parts, device=x.device), torch.empty((), device=x.device)
        squares[(parts,)](x, part, x.numel(), BLOCK=4096)
        mean[(1,)](part, out, parts, x.numel(), BLOCK=128)
        return out * x[:, 0]
"""
LINE = "SMALL = {'ROWS': 1024, 'COLS': 2048}"


@pytest.mark.anyio
async def test_a_line_to_paste_decides_what_was_left_open(pool: Pool) -> None:
    """Of 512 parts a loop adds 128 at a time: it has four turns at full shape alone, and less at all sizes that looks take."""
    problem = Problem("p", 1, "validation", MEAN)
    result, remarks = await judged(pool, problem, MEAN_OF_PARTS)
    assert result.correct and why_undecided(result.detail) is Undecided.LONGER
    (line,) = remarks
    assert line.startswith("p: this line in the file has it judged where it is long enough, in ") and line.endswith(LINE)
    result, remarks = await judged(pool, problem, MEAN_OF_PARTS)
    assert (result.cached, remarks) == (True, []), "nothing was noted, so that nobody knows why it was left open"
    pasted = replace(problem, source=MEAN + LINE + "\n")
    result, remarks = await judged(pool, pasted, MEAN_OF_PARTS)
    assert (result.status, result.detail, remarks) == (Status.CORRECT, "", [])


NUMBERS = MEAN.replace("torch.randn(ROWS, COLS)", "torch.randn(1024, 2048)")
SMALLER = {"ROWS": 128, "COLS": 256}


@pytest.mark.parametrize(
    ("source", "found", "why", "told"),
    [
        (
            MEAN,
            Open(SMALLER, 1, 40_000.0),
            Undecided.WORK,
            "has it judged where it is long enough, in 1 s: SMALL = {'ROWS': 512, 'COLS': 2048}",
        ),
        (MEAN, Open(SMALLER, 9, 40_000.0), Undecided.LONGER, "in 0 s: SMALL = {'ROWS': 128, 'COLS': 2048}"),
        (MEAN, Open(SMALLER, 0, 72e6), Undecided.LONGER, "at ROWS = 1024, COLS = 2048 its kernels would run for some 60 min"),
        # Rows alone would take 8 times less, which is 450 s; rows and columns 64 times less, unless they were that long before.
        (
            MEAN,
            Open({"ROWS": 16, "COLS": 16}, 3, 72e6),
            Undecided.LONGER,
            "is likely to have it judged where it is long enough, in 56 s: SMALL = {'ROWS': 128, 'COLS': 256}",
        ),
        (MEAN, Open(SMALLER, 3, 72e6), Undecided.LONGER, "at ROWS = 128, COLS = 2048 its kernels would run for some 8 min"),
        (
            MEAN,
            Open({"ROWS": 1024, "COLS": 2048}, 0, 1.0),
            Undecided.LONGER,
            "no SMALL is known that decides this: it was judged where it should be long enough",
        ),
        (MEAN, None, Undecided.OWN, "no SMALL is known that decides this: the sizes that it is made for are not known"),
        (MEAN, None, Undecided.TIME, "no SMALL is known that decides this: it did not end at the least sizes that were tried"),
        (
            NUMBERS,
            Open({"SIZE_1024": 128, "SIZE_2048": 256}, 0, 1.0),
            Undecided.LONGER,
            "decides this: it names constants at the top of the file, where these sizes are not: 1024, 2048",
        ),
    ],
)
def test_why_there_is_no_line_to_paste_is_told(source: str, found: Open | None, why: Undecided, told: str) -> None:
    full = Specs((), (TensorSpec((1024, 2048), (2048, 1), "float32"),))
    (line,) = to_decide(Problem("p", 1, "validation", source), why, found, full, run_seconds=120)
    assert line.startswith("p: ") and line.endswith(told)


def test_a_line_at_the_end_of_a_file_counts_beside_one_that_is_there() -> None:
    """Its author's names may say what a problem is, and not how large: they are constants all the same."""
    source = f"NUM_LAYERS = 4\n{MEAN}SMALL = {{'ROWS': 128, 'NUM_LAYERS': 2}}\n"
    full = Specs((), (TensorSpec((1024, 2048), (2048, 1), "float32"),))
    open_there = Open({"ROWS": 128, "NUM_LAYERS": 2}, 1, 40_000.0)
    (line,) = to_decide(Problem("p", 1, "validation", source), Undecided.LONGER, open_there, full, run_seconds=120)
    pasted = line.partition(" s: ")[2]
    assert pasted == "SMALL = {'ROWS': 512, 'NUM_LAYERS': 4}"
    assert small_of(f"{source}{pasted}\n") == {"ROWS": 512, "NUM_LAYERS": 4}
    assert apply_small(f"{source}{pasted}\n").splitlines()[:4:3] == ["NUM_LAYERS = 4", "ROWS, COLS = 512, 2048"]


def test_arguments_that_no_child_is_sent_are_told() -> None:
    full = Specs((), (TensorSpec((16384, 16384), (16384, 1), "float32"),))
    (line,) = to_decide(Problem("p", 1, "validation", MEAN), Undecided.LONGER, Open(SMALLER, 0, 1.0), full, run_seconds=120)
    assert line.endswith("no SMALL is known that decides this here: at ROWS = 1024, COLS = 2048 its arguments take 1.1 GB")
