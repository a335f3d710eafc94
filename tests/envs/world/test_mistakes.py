from __future__ import annotations

import random
from collections import Counter

import anyio
import pytest

from envs.world.drafts import Draft, code
from envs.world.mistakes import MISTAKES, Mistake, applicable, draw_slips, slip
from envs.world.schedule import draw_stage
from envs.world.suite import training_tasks
from envs.world.teacher import Variant, schedule_of
from experiments.world.check import mistaken_drafts
from rlkernel.evaluator.pool import open_pool
from rlkernel.types import Evaluation
from tests.envs.world.test_write import SOFTMAX, WHOLE
from tests.patient import PATIENT

CERTAIN = [mistake for mistake in MISTAKES if not mistake.sometimes]
PARTS = 8


def test_the_library_is_large_and_says_when_a_mistake_goes_unseen() -> None:
    assert len(MISTAKES) == len({mistake.name for mistake in MISTAKES}) >= 30
    assert len(CERTAIN) >= 40


def test_every_mistake_occurs_and_changes_the_text() -> None:
    seen: Counter[str] = Counter()
    rng = random.Random(0)
    for task in training_tasks():
        for variant in (Variant.TUNED, Variant.FUSED):
            schedule = schedule_of(task, variant, rng)
            right = code(Draft(task, schedule))
            for place, mistake in applicable(task, schedule):
                seen[mistake.name] += 1
                if seen[mistake.name] == 1:
                    assert code(Draft(task, schedule, (slip(place, mistake),))) != right
    assert [mistake.name for mistake in MISTAKES if not seen[mistake.name]] == []


def test_drawn_mistakes_are_different_and_mending_takes_them_back() -> None:
    for seed in range(20):
        slips = draw_slips(SOFTMAX, (WHOLE,), 3, random.Random(seed))
        assert len({s.mistake for s in slips}) == len({(s.slot, s.at) for s in slips}) == 3
        draft = Draft(SOFTMAX, (WHOLE,), slips)
        assert code(draft) != code(draft.mended()) == code(Draft(SOFTMAX, (WHOLE,)))
        assert not draft.honest and draft.mended().honest


def test_a_split_has_the_mistakes_of_its_two_kernels() -> None:
    task = next(t for t in training_tasks(["fold"]) if t.steps[-1].op.name == "sum" and t.numbers(0)[-1] > 60000)
    stage = draw_stage(task, 0, len(task.steps), "row_split", random.Random(0))
    names = {mistake.name for _, mistake in applicable(task, (stage,))}
    assert {"chunk rounded down", "parts of a row overwrite each other", "half of the splits launched"} <= names


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_mistakes_that_always_do_harm_are_not_correct(part: int) -> None:
    chosen: list[Mistake] = CERTAIN[part::PARTS]
    found: dict[str, Evaluation] = {}

    async def run() -> None:
        async with open_pool(device="cpu", jobs=1, config=PATIENT) as pool:
            for mistake in chosen:
                (draft,) = mistaken_drafts(mistake.name, 1)
                found[mistake.name] = await pool.evaluate(draft.task.problem(), code(draft))

    anyio.run(run)
    assert {name: e.status for name, e in found.items() if e.correct} == {}
