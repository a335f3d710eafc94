from __future__ import annotations

from itertools import pairwise

import anyio
import pytest

from envs.teacher.corpus import Conversation, Exchange
from envs.world.corpus import TURNS, repetition, write_corpus
from envs.world.suite import training_tasks
from envs.world.teacher import remark
from rlkernel.environment.kernel_env import KernelEnvironment
from rlkernel.types import Evaluation, Problem, Status

TASKS = training_tasks(["row"])[:4]
LAZY = Evaluation(Status.CORRECT, "", speedup=1.0, coverage=0.1, candidate_us=80.0)
FAST = Evaluation(Status.CORRECT, "", speedup=2.0, coverage=1.0, candidate_us=40.0)
DECOY = Evaluation(Status.NO_KERNEL, "")


class ByText:
    """Judges by the text: lets the corpus be tested without executing anything."""

    async def evaluate(self, problem: Problem, code: str | None) -> Evaluation:
        await anyio.lowlevel.checkpoint()
        if code is None or "return y" not in code:
            return DECOY
        return FAST if "torch.softmax" not in code else LAZY


def corpus(seed: int) -> tuple[Conversation, ...]:
    done: list[Conversation] = []

    async def run() -> tuple[Conversation, ...]:
        told = lambda key, conversation: done.append(conversation)  # noqa: E731
        return await write_corpus(TASKS, ByText(), KernelEnvironment(), conversations=20, seed=seed, on_done=told)

    found = anyio.run(run)
    assert len(done) == len(found) == 80
    return found


def test_the_corpus_depends_on_the_seed_alone_and_has_up_to_eight_turns() -> None:
    found = corpus(0)
    assert found == corpus(0) != corpus(1)
    assert {len(conversation.exchanges) for conversation in found} == set(TURNS[0]) and max(TURNS[0]) == 8
    assert [conversation.problem.name for conversation in found[::20]] == [task.name for task in TASKS]


def test_a_conversation_shows_each_verdict_to_the_next_answer() -> None:
    tasks = {task.name: task for task in TASKS}
    for conversation in corpus(0):
        exchanges = conversation.exchanges
        for first, second in pairwise(exchanges):
            assert first.feedback == KernelEnvironment().feedback(first.evaluation)
            assert second.answer.startswith(remark(tasks[conversation.problem.name], first.evaluation))
        assert exchanges[-1].feedback == ""


def test_conversations_of_one_problem_differ() -> None:
    found = corpus(0)
    firsts = [{c.exchanges[0].answer for c in found[20 * k : 20 * k + 20]} for k in range(4)]
    assert all(len(answers) >= 10 for answers in firsts)


def test_repetition_by_hand() -> None:
    """Lazy answers that have a next one: three; one of these is lazy."""
    problem = Problem("p", 1, "train", "")
    rows = ((LAZY, LAZY, FAST), (LAZY, FAST), (FAST, LAZY))
    talks = [Conversation(problem, "", tuple(Exchange("", e, "") for e in row)) for row in rows]
    assert repetition(talks) == pytest.approx(1 / 3)
    assert repetition(talks[2:]) == 0.0
