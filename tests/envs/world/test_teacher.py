from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from envs.teacher.script import situation
from envs.world.drafts import Draft, code, completion
from envs.world.ops import Kind
from envs.world.schedule import TORCH, Stage
from envs.world.suite import training_tasks
from envs.world.teacher import (
    BEGINNER,
    RISK,
    Mixture,
    Move,
    Variant,
    costliest,
    first_draft,
    fused,
    next_draft,
    remark,
    retiled,
    with_risk,
    write,
)
from envs.world.write.module import Use
from rlkernel.environment.kernel_env import KernelEnvironment
from rlkernel.types import Evaluation, LaunchFact, OpFact, Status
from tests.envs.world.test_write import SOFTMAX, WHOLE

RIGHT = Draft(SOFTMAX, (WHOLE,))
FAST = Evaluation(Status.CORRECT, "", speedup=2.0, candidate_us=30.0)
SLOW = Evaluation(Status.CORRECT, "", speedup=1.0, candidate_us=90.0)
WRONG = Evaluation(Status.INCORRECT, "relative error 0.3")
DECOY = Evaluation(Status.NO_KERNEL, "")


def always(**moves: Move) -> Mixture:
    """The mixture that makes one move after each situation."""
    return Mixture(BEGINNER.first, {key: {move: 1.0} for key, move in moves.items()})


def test_the_mixture_is_a_distribution_and_risk_grows_with_ambition() -> None:
    assert set(BEGINNER.first) == set(RISK) == set(Variant)
    assert [
        round(sum(shares), 9) for shares in (BEGINNER.first.values(), *(one.values() for one in BEGINNER.after.values()))
    ] == [1.0] * 5
    ordered = [RISK[v] for v in (Variant.LAZY, Variant.ONE, Variant.PARTIAL, Variant.FUSED, Variant.TUNED)]
    assert ordered == sorted(ordered) and ordered[1] <= 0.15 and ordered[-1] >= 0.7


def test_mistakes_come_at_the_risk_that_is_asked_for() -> None:
    """Three standard errors of 1,000 drafts at risk 0.5 are 0.047."""
    rng = random.Random(0)
    counts = Counter(len(with_risk(RIGHT, 0.5, rng).slips) for _ in range(1000))
    assert counts[0] / 1000 == pytest.approx(0.5, abs=0.047)
    assert counts[1] > counts[2] > counts[3] > 0


@pytest.mark.parametrize("variant", tuple(Variant))
def test_every_variant_is_a_module_that_the_environment_can_extract(variant: Variant) -> None:
    rng = random.Random(1)
    for task in training_tasks()[::9]:
        draft = write(task, variant, rng)
        text = code(draft)
        assert KernelEnvironment().extract(completion(draft)) == text
        assert ("@triton.jit" in text) is (variant is not Variant.NO_KERNEL)
        kernels = [stage for stage in draft.schedule if stage.form != TORCH]
        if variant in (Variant.LAZY, Variant.ONE, Variant.DECOY):
            assert len(kernels) == 1
        if variant is Variant.LAZY and any(step.op.kind is Kind.ELEMENT for step in task.steps):
            assert kernels[0].last == kernels[0].first + 1 and kernels[0].form == "flat"


@pytest.mark.parametrize(
    ("evaluation", "key", "opening"),
    [
        (FAST, "fast", "It is near the floor, and softmax_kernel takes the most time."),
        (SLOW, "slow", "It is far from the floor, and torch takes the most time."),
        (DECOY, "no_kernel", "The kernel's result must be used."),
        (WRONG, "broken", "The values are wrong."),
        (Evaluation(Status.COMPILE_ERROR, ""), "broken", "It fails: compile error."),
    ],
)
def test_remarks_read_the_feedback(evaluation: Evaluation, key: str, opening: str) -> None:
    """The floor of the softmax is 2 * 4096 * 5000 * 2 bytes at 4.3e6 per us: 19 us."""
    share = (0.9, 0.1) if key == "fast" else (0.2, 0.8)
    launches = (LaunchFact("softmax_kernel", 1, 1.0, share[0], True),)
    facts = replace(evaluation, launches=launches, ops=(OpFact("aten.add", 1, 1.0, share[1]),))
    assert situation(facts) == key
    near = replace(facts, candidate_us=25.0) if key == "fast" else facts
    assert remark(SOFTMAX, near) == opening
    assert costliest(facts) == ("softmax_kernel" if key == "fast" else "torch")


def test_mending_takes_one_mistake_back_at_a_time() -> None:
    rng = random.Random(2)
    draft = with_risk(RIGHT, 1.0, rng)
    for left in range(len(draft.slips) - 1, -1, -1):
        draft = next_draft(draft, WRONG, rng, always(broken=Move.MEND))
        assert len(draft.slips) == left
    assert draft == RIGHT


def test_a_hack_is_put_to_use() -> None:
    used = next_draft(replace(RIGHT, use=Use.UNUSED), DECOY, random.Random(0), always(no_kernel=Move.USE))
    assert (used.use, used.schedule) == (Use.LIVE, RIGHT.schedule)


def test_fusing_joins_neighbours_and_retiling_keeps_the_cut() -> None:
    rng = random.Random(3)
    kernel = Stage(1, 2, "row_loop", (("block", 512), ("passes", 1), ("warps", 4)))
    timid = Draft(SOFTMAX, (Stage(0, 1), kernel, Stage(2, 3)))
    joined = fused(timid, rng)
    assert len(joined) == 2 and joined[0].last == joined[1].first
    assert {len(retiled(timid, SLOW, rng)) for _ in range(5)} == {3}
    others = {retiled(timid, SLOW, rng) for _ in range(30)}
    assert len(others) > 10 and all(schedule[0] == Stage(0, 1) for schedule in others)


def test_conversations_of_a_problem_start_differently() -> None:
    rng = random.Random(4)
    drafts = {code(first_draft(SOFTMAX, BEGINNER, rng)) for _ in range(40)}
    assert len(drafts) >= 20
