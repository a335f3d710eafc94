"""One actor as the driver sees it: refused in one line, closed before it is killed. Ray is played here."""

from __future__ import annotations

import sys
from collections.abc import Generator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from rlkernel.evaluator.ray import worker as ray_worker
from rlkernel.evaluator.ray.actor import Actor
from rlkernel.evaluator.ray.messages import Answer, Hello
from rlkernel.evaluator.ray.places import Place
from rlkernel.evaluator.ray.worker import Opener, Refused, WorkerLost
from rlkernel.types import Problem
from tests.evaluator.ray.scripted import CONFIG, Nodes

ON_A_GPU = Place("abcdefghij", "10.0.0.1", 0, 8, True)
READY = Hello("H200", ("GPU-2",), 8, CONFIG, ())


class Remote:
    """A method of an actor of Ray: `answer`, or nothing ever; `log` has its calls."""

    def __init__(self, answer: object = None, name: str = "", log: list[str] | None = None) -> None:
        self.answer, self.name, self.log = answer, name, [] if log is None else log

    async def remote(self, *_: object) -> object:
        self.log.append(self.name)
        if self.answer is None:
            await anyio.sleep_forever()
        return self.answer


class Served:
    """The answer of `serve`, which comes when the actor was stopped, or to all who wait."""

    def __init__(self) -> None:
        self.over = anyio.Event()

    def __await__(self) -> Generator[Any, Any, None]:
        return self.over.wait().__await__()


class OneActor(Nodes):
    """The module `ray`, whose actors are `handle`."""

    def __init__(self, version: str | None, hello: Hello | None, answer: Answer | None = None) -> None:
        super().__init__(a=8)
        self.log: list[str] = []
        served = Served()

        async def stop() -> None:
            self.log.append("stop")
            served.over.set()

        self.handle = SimpleNamespace(
            version=Remote(version), hello=Remote(hello, "hello", self.log), serve=SimpleNamespace(remote=lambda *_: served),
            stop=SimpleNamespace(remote=stop), judge=Remote(answer, "judge", self.log), drop=Remote(),
        )  # fmt: skip

    def remote(self, _: type[Actor]) -> Any:
        return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=lambda: self.handle))

    def kill(self, _: object) -> None:
        self.log.append("kill")


@pytest.fixture
def without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    """The part of Ray that opening an actor imports."""
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "ray.util", SimpleNamespace())
    strategies = SimpleNamespace(NodeAffinitySchedulingStrategy=lambda *_, **__: None)
    monkeypatch.setitem(sys.modules, "ray.util.scheduling_strategies", strategies)
    monkeypatch.setattr(ray_worker, "source_version", lambda: "here")


def opener_of(ray: OneActor) -> Opener:
    opener = Opener(ray, 0, CONFIG, "GPU-1", gpu=True)
    opener.first = Hello("H200", ("GPU-0",), 8, CONFIG, ())
    return opener


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("version", "hello", "line", "log"),
    [
        (
            None,
            None,
            r"10.0.0.1 \(node abcdefgh, GPU actor 0\): an actor found no room \(it wants 8 CPUs and a GPU, all that",
            ["kill"],
        ),
        ("here", None, "an actor did not open its pool within 0 s", ["hello", "stop", "kill"]),
        (
            "there",
            None,
            r"has another version of rlkernel, torch, triton or numpy \(there there, here here\): install the same",
            ["kill"],
        ),
        (
            "here",
            replace(READY, cards=("GPU-1",)),
            "evaluates on the GPU that this process uses itself: start Ray there with",
            ["hello", "stop", "kill"],
        ),
        (
            "here",
            replace(READY, device="A100"),
            "has A100, another place H200: times on both do not compare",
            ["hello", "stop", "kill"],
        ),
    ],
)
async def test_what_cannot_be_used_is_refused_in_one_line_and_its_pool_is_closed(
    version: str | None, hello: Hello | None, line: str, log: list[str], monkeypatch: pytest.MonkeyPatch, without_ray: None
) -> None:
    if hello is None and version != "there":
        monkeypatch.setattr(ray_worker, "START_SECONDS", 0.01)
    ray = OneActor(version, hello)
    with pytest.raises(Refused, match=line):
        async with opener_of(ray).open(ON_A_GPU):
            raise AssertionError("refused")
    assert ray.log == log


@pytest.mark.anyio
async def test_a_pool_is_closed_before_its_actor_is_killed(relu: Problem, without_ray: None) -> None:
    ray = OneActor("here", READY, Answer(failed="OSError: disk full"))
    async with opener_of(ray).open(ON_A_GPU) as worker:
        pass
    assert ray.log == ["hello", "stop", "kill"]

    # One that cannot go on still answers.
    ray = OneActor("here", READY, Answer(failed="OSError: disk full"))
    async with opener_of(ray).open(ON_A_GPU) as worker:
        with pytest.raises(WorkerLost, match=r"^OSError: disk full$"):
            await worker.judge(relu, "code")
        assert worker.lost == "OSError: disk full"
        assert worker.over.is_set()
        assert worker.answered == 0
    assert ray.log == ["hello", "judge", "stop", "kill"]

    # Cancelled while it opens.
    ray = OneActor("here", None)

    async def open_it() -> None:
        async with opener_of(ray).open(ON_A_GPU):
            raise AssertionError("it never opens")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(open_it)
        with anyio.fail_after(10):
            while ray.log != ["hello"]:
                await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert ray.log == ["hello", "stop", "kill"]
