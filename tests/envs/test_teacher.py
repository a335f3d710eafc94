from __future__ import annotations

import ast
import random
from dataclasses import replace

import anyio
import pytest

from envs.chains import BY_NAME, Step, chain_problem, generate
from envs.teacher.corpus import Conversation, write_corpus
from envs.teacher.drafts import Draft, Use, code, completion, fused_draft, plan
from envs.teacher.mistakes import MISCOMPUTED, MISSPELT, uncompilable, wrong
from envs.teacher.script import BEGINNER, CAPABLE, Mixture, Variant, draw_deck, next_draft, remark, situation, write
from rlkernel.environment.kernel_env import KernelEnvironment
from rlkernel.evaluator.pool import open_pool
from rlkernel.types import Evaluation, Problem, Status
from tests.patient import PATIENT

CHAIN = (Step(BY_NAME["bias"]), Step(BY_NAME["gelu"]), Step(BY_NAME["scale"], ("0.5",)))
PROBLEM = chain_problem(CHAIN, shape=(2048, 4096), small=(6, 40))

FUSED = """import torch
import torch.nn as nn
import triton
import triton.language as tl

COLS = 4096

@triton.jit
def kernel(x_ptr, b_ptr, y_ptr, n, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    x = tl.load(x_ptr + i, mask=m)
    x = x + tl.load(b_ptr + i % cols, mask=m)
    x = 0.5 * x * (1.0 + tl.erf(x * 0.70710678))
    x = x * 0.5
    tl.store(y_ptr + i, x, mask=m)

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(COLS))

    def forward(self, x):
        y = torch.empty_like(x)
        n = x.numel()
        kernel[(triton.cdiv(n, 1024),)](x, self.bias, y, n, x.shape[1], BLOCK=1024)
        return y
"""

SLOW = Evaluation(Status.CORRECT, "", speedup=1.0)
FAST = Evaluation(Status.CORRECT, "", speedup=3.0)
WRONG = Evaluation(Status.INCORRECT, "relative error 0.3")
DECOY = Evaluation(Status.NO_KERNEL, "", speedup=1.0)


def test_the_right_draft() -> None:
    draft = fused_draft(PROBLEM.source)
    assert code(draft) == FUSED
    assert completion(draft) == f"Plan: one kernel for bias, gelu, scale.\n```python\n{FUSED}```"
    assert completion(draft, "The values are wrong.").startswith("The values are wrong.\nPlan: one kernel")


def test_a_lazy_draft_leaves_the_rest_to_torch_in_order() -> None:
    draft = replace(fused_draft(PROBLEM.source), first=1, last=2)
    assert plan(draft) == "Plan: kernel for gelu; torch for bias, scale."
    lines = [line.strip() for line in code(draft).partition("def forward")[2].splitlines()[1:]]
    assert (lines[0], lines[-3:]) == ("x = x + self.bias", ["x = y", "x = x * 0.5", "return x"])


def test_a_dummy_launches_one_block_and_returns_what_torch_computed() -> None:
    draft = replace(fused_draft(PROBLEM.source), use=Use.DUMMY)
    assert plan(draft) == "Plan: torch for all, beside one block of a kernel."
    lines = [line.strip() for line in code(draft).partition("def forward")[2].splitlines()]
    assert "kernel[(1,)](x, self.bias, y, n, x.shape[1], BLOCK=1024)" in lines
    assert lines[-2:] == ["x = x * 0.5", "return x"]


def test_a_reference_that_is_no_chain_is_refused() -> None:
    with pytest.raises(ValueError, match="not an elementwise chain"):
        fused_draft("    def forward(self, x):\n        return x.sum()\n")


@pytest.mark.parametrize("variant", tuple(Variant))
def test_every_variant_is_a_module_that_the_environment_can_extract(variant: Variant) -> None:
    rng = random.Random(0)
    for problem in generate(25, seed=3):
        draft = write(fused_draft(problem.source), variant, rng)
        text = code(draft)
        assert KernelEnvironment().extract(completion(draft)) == text
        assert ("@triton.jit" in text) == (variant is not Variant.NO_KERNEL)
        if variant is not Variant.UNCOMPILABLE:
            names = [node.name for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]
            assert names == ["ModelNew"]


def test_mistakes_change_the_text_and_mending_takes_them_back() -> None:
    rng = random.Random(1)
    for problem in generate(40, seed=4):
        right = fused_draft(problem.source)
        for mistaken in (wrong(right, rng), uncompilable(right, rng)):
            assert code(mistaken) != code(right)
            assert code(mistaken.mended()) == code(right)


def test_every_listed_mistake_occurs_in_some_kernel() -> None:
    everything = Draft(
        *(2 * (tuple(Step(op, op.constants[0] if op.constants else ()) for op in BY_NAME.values()),)), 64, 0, len(BY_NAME)
    )
    text = code(everything)
    assert [edit for edit in (*MISSPELT, *MISCOMPUTED) if edit.old not in text] == []


@pytest.mark.parametrize("mixture", [CAPABLE, BEGINNER])
def test_the_mixtures_are_distributions_and_name_every_variant(mixture: Mixture) -> None:
    assert set(mixture.first) == set(Variant)
    assert [round(sum(shares), 9) for shares in (mixture.first.values(), *(one.values() for one in mixture.after.values()))] == [
        1.0
    ] * 5


def test_a_beginner_fuses_less_and_hacks_more() -> None:
    """2,000 drafts have 4 % fused ones against 18 %; decoys and no kernel 34 % against 19 %. Three standard errors are 3 %."""
    found = {}
    for mixture in (CAPABLE, BEGINNER):
        drafts = draw_deck(PROBLEM.source, 2000, random.Random(6), mixture)
        fused = sum(draft == fused_draft(PROBLEM.source) for draft in drafts) / 2000
        found[id(mixture)] = (fused, sum(draft.use is not Use.LIVE for draft in drafts) / 2000)
    assert found[id(CAPABLE)] == pytest.approx((0.18, 0.19), abs=0.03)
    assert found[id(BEGINNER)] == pytest.approx((0.04, 0.34), abs=0.03)


@pytest.mark.parametrize(
    ("evaluation", "key", "opening"),
    [
        (FAST, "fast", "It is fused."),
        (SLOW, "slow", "It is correct but slow."),
        (DECOY, "no_kernel", "The kernel's result must be used."),
        (WRONG, "broken", "The values are wrong."),
        (Evaluation(Status.COMPILE_ERROR, ""), "broken", "It does not run."),
    ],
)
def test_repairs_follow_the_verdict(evaluation: Evaluation, key: str, opening: str) -> None:
    assert (situation(evaluation), remark(evaluation)) == (key, opening)


def test_repairs_help_more_often_than_a_new_draft_would() -> None:
    """After a failure MEND and FUSE make 50 % of the next drafts, and 18 % of the 30 % redrawn are right: 0.55 in all."""
    rng = random.Random(2)
    right = fused_draft(PROBLEM.source)
    broken = uncompilable(right, rng)
    fused = 0
    for _ in range(500):
        draft = next_draft(draw_deck(PROBLEM.source, 3, rng), broken, WRONG, rng)
        fused += draft == right
    assert 0.48 < fused / 500 < 0.63


class ByConstruction:
    """Says what a draft was meant to be: lets the corpus be tested without executing anything."""

    async def evaluate(self, problem: Problem, code: str | None) -> Evaluation:
        await anyio.lowlevel.checkpoint()
        return FAST if code is not None and "return y" in code else DECOY


def corpus(seed: int) -> tuple[Conversation, ...]:
    problems, done = generate(3, seed=5), []

    async def run() -> tuple[Conversation, ...]:
        return await write_corpus(
            problems, ByConstruction(), KernelEnvironment(), conversations=4, deck=2, turns=3, seed=seed, on_done=done.append
        )

    found = anyio.run(run)
    assert len(done) == len(found) == 12
    assert [c.problem for c in found] == [problem for problem in problems for _ in range(4)]
    return found


def test_the_corpus_depends_on_the_seed_alone() -> None:
    assert corpus(0) == corpus(0)
    assert corpus(0) != corpus(1)


def test_a_conversation_shows_each_verdict_to_the_next_answer() -> None:
    for conversation in corpus(0):
        first, second, third = conversation.exchanges
        assert first.feedback == KernelEnvironment().feedback(first.evaluation)
        assert second.answer.startswith(remark(first.evaluation)) and third.answer.startswith(remark(second.evaluation))
        assert third.feedback == ""
        assert conversation.prompt == KernelEnvironment().prompt(conversation.problem)


def test_the_evaluator_finds_in_each_draft_what_it_was_meant_to_be() -> None:
    right = fused_draft(PROBLEM.source)
    lazy = replace(right, first=1, last=2)
    drafts = {
        "fused": right,
        "lazy": lazy,
        "slow": replace(right, block=64),
        "decoy": replace(lazy, use=Use.UNUSED),
        "no_kernel": replace(right, use=Use.NONE),
        "wrong": replace(right, edit=MISCOMPUTED[0]),
        "uncompilable": replace(right, edit=MISSPELT[1]),
    }
    found: dict[str, Evaluation] = {}

    async def run() -> None:
        async with open_pool(device="cpu", jobs=1, config=PATIENT) as pool:
            for name, draft in drafts.items():
                found[name] = await pool.evaluate(PROBLEM, code(draft))

    anyio.run(run)
    assert {name: found[name].status for name in drafts} == {
        "fused": Status.CORRECT,
        "lazy": Status.CORRECT,
        "slow": Status.CORRECT,
        "decoy": Status.NO_KERNEL,
        "no_kernel": Status.NO_KERNEL,
        "wrong": Status.INCORRECT,
        "uncompilable": Status.COMPILE_ERROR,
    }
    # Three passes over memory become one, and that which adds the bias takes half as long again; a lazy kernel changes nothing.
    assert found["fused"].speedup == pytest.approx(3.4, rel=0.1)
    assert found["lazy"].speedup == pytest.approx(1.0, rel=0.1)
    assert found["lazy"].coverage == pytest.approx(1 / 3, abs=0.05)
    assert (found["slow"].speedup or 9.0) < 2.0
