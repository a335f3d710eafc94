"""What runs on a node: evaluations that are dropped, whenever the news of it arrives."""

from __future__ import annotations

import anyio
import pytest

from rlkernel.evaluator.ray.actor import Actor
from rlkernel.evaluator.ray.messages import Answer
from rlkernel.types import Evaluation, Problem, Status


class Slow:
    """An actor's pool that never answers a candidate but "quick"."""

    notices = ()

    async def judge(self, problem: Problem, code: str) -> Evaluation:
        if code != "quick":
            await anyio.sleep_forever()
        return Evaluation(Status.CORRECT, code)


@pytest.mark.anyio
async def test_an_actor_forgets_what_it_was_told_to_drop(relu: Problem) -> None:
    actor = Actor()
    actor._pool = Slow()  # type: ignore[assignment]
    answers: dict[int, Answer] = {}

    async def judge(ticket: int, code: str) -> None:
        answers[ticket] = await actor.judge(ticket, relu, code)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(judge, 1, "slow")
        tasks.start_soon(judge, 4, "quick")
        await anyio.wait_all_tasks_blocked()
        for ticket in (1, 2, 4, 5):  # runs; was passed by 4; has ended; is to come
            await actor.drop(ticket)
        for ticket in (5, 3, 2):
            tasks.start_soon(judge, ticket, "quick" if ticket == 3 else "slow")
    verdict = Answer(Evaluation(Status.CORRECT, "quick"))
    assert answers == {1: Answer(), 2: Answer(), 3: verdict, 4: verdict, 5: Answer()}
    assert (actor._scopes, actor._dropped, actor._late, actor._newest) == ({}, set(), set(), 5)
