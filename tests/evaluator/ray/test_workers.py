"""All actors of a cluster: places that come, go and are given up; seats; what breaks meanwhile. Actors are scripted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from rlkernel.errors import UsageError
from rlkernel.evaluator.ray import workers as ray_workers
from rlkernel.evaluator.ray.places import Place
from rlkernel.evaluator.ray.worker import Worker
from rlkernel.types import Problem
from tests.evaluator.ray.scripted import Crew, Nodes, ScriptedOpener, crew_pool, scripted_pool


@pytest.mark.anyio
async def test_nodes_that_join_are_used(relu: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_workers, "WATCH_SECONDS", 0.01)
    crew = Crew(Nodes(a=1))
    async with crew_pool(crew) as pool:
        assert pool.nodes == ("a",)
        crew.nodes.cpus["b"] = 2
        with anyio.fail_after(10):
            while len(pool.nodes) < 2:
                await crew._changed.wait()
        assert (pool.nodes, pool.jobs) == (("a", "b"), 3)
        assert (await pool.evaluate(relu, "code")).correct
    assert crew.started == ["a", "b"]


@pytest.mark.anyio
async def test_a_place_is_given_up_after_three_losses_without_an_answer(relu: Problem) -> None:
    crew = Crew(Nodes(a=1))
    async with crew_pool(crew) as pool:
        for number in range(7):
            if number in (1, 2, 3):  # an answer between losses: they are not in a row
                await pool.evaluate(relu, f"code {number}")
            worker = crew.usable[0]
            worker.lose(f"loss {number}")
            with anyio.fail_after(10):
                while worker in crew.alive or crew._starting:
                    await crew._changed.wait()
        assert crew.told[-1] == "a (node a) is given up after 3 losses without an answer: loss 6"
        assert pool.nodes == ()
        with pytest.raises(UsageError, match=r"no node of the Ray cluster is left to evaluate: .* is given up after 3 losses"):
            await pool.evaluate(relu, "code")
    assert len(crew.started) == 7


@pytest.mark.anyio
async def test_an_actor_that_is_wanted_whole_takes_nobody_else(relu: Problem) -> None:
    _, crew = scripted_pool(jobs=2)
    order: list[str] = []
    leave = {name: anyio.Event() for name in ("first", "alone", "after")}

    async def sit(name: str, alone: bool) -> None:
        async with crew.seat(alone=alone) as worker:
            order.append(f"{name} of {worker.busy}")
            await leave[name].wait()

    async with anyio.create_task_group() as tasks:
        for name in leave:
            tasks.start_soon(sit, name, name == "alone")
            await anyio.wait_all_tasks_blocked()
        for name in ("first", "alone", "after"):
            leave[name].set()
            await anyio.wait_all_tasks_blocked()
    assert order == ["first of 1", "alone of 1", "after of 1"]


@pytest.mark.anyio
async def test_seats_are_given_back_by_what_is_cancelled(relu: Problem) -> None:
    pool, crew = scripted_pool(jobs=1)
    (worker,) = crew.alive
    async with crew.seat(alone=False):
        for alone in (False, True):
            with anyio.move_on_after(0.01):
                async with crew.seat(alone=alone):
                    raise AssertionError("there is one seat")
    assert (worker.busy, worker.reserved) == (0, False)
    assert (await pool.evaluate(relu, "after")).correct


@pytest.mark.anyio
async def test_what_breaks_in_the_background_does_not_hide_what_the_body_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_workers, "WATCH_SECONDS", 0.01)
    nodes = Nodes(a=1)

    def unreachable() -> list[dict[str, Any]]:
        raise KeyError("the head is gone")

    with pytest.raises(UsageError, match=r"^the Ray cluster does not tell its nodes: KeyError: 'the head is gone': the same"):
        async with crew_pool(Crew(nodes)):
            monkeypatch.setattr(nodes, "nodes", unreachable)
            await anyio.sleep_forever()

    class Stubborn(ScriptedOpener):
        @asynccontextmanager
        async def open(self, place: Place) -> AsyncIterator[Worker]:
            try:
                async with super().open(place) as worker:
                    yield worker
            finally:
                raise OSError("cannot close")

    with pytest.raises(RuntimeError, match=r"^the body's$"):
        async with crew_pool(Crew(Nodes(a=1), opener=Stubborn)):
            raise RuntimeError("the body's")
    with pytest.raises(OSError, match=r"^cannot close$"):
        async with crew_pool(Crew(Nodes(a=1), opener=Stubborn)):
            pass


def test_notices_are_kept_once_and_in_order() -> None:
    _, crew = scripted_pool(jobs=1)
    (worker,) = crew.alive
    for said in (("one",), ("one", "two"), ("two",)):
        worker.notices = said
        crew.hear(worker)
    assert crew.notices == ["a (node a): one", "a (node a): two"]
