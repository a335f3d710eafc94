"""A GPU's runner as the pool sees it: replaced when it dies, given up when it does not start. Its far end is played here."""

from __future__ import annotations

import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from rlkernel.errors import EvaluatorFailed
from rlkernel.evaluator import wire
from rlkernel.evaluator.cards.gpu_runner import STARTS, GpuRunner, RunnerFailed, RunnerLost
from rlkernel.evaluator.cards.gpus import Gpu
from rlkernel.evaluator.messages import codec
from rlkernel.evaluator.messages.endings import Failed
from rlkernel.evaluator.messages.gpu import Card, Hello, NotCompiled, TimeCompiled
from rlkernel.evaluator.processes.fork_server import Child, ZygoteDied
from rlkernel.types import Precision, Status

CARD = Gpu(0, "GPU-1", "NVIDIA H200", 140 << 30, "580.1")
QUESTION = codec.pack(TimeCompiled("mine/relu", "import torch", precision=Precision.PYTORCH))
"""Any question will do: the answer is played."""
pytestmark = pytest.mark.anyio


class Server:
    """Plays a fork server. `far`: the runners' ends of their sockets, in order; a runner that is killed or closed has ended."""

    def __init__(self) -> None:
        self.children: list[Child] = []
        self.far: list[socket.socket] = []
        self.dead = False

    async def ready(self) -> None:
        pass

    def end(self, index: int, *, heard: bool = True) -> None:
        """heard: whether the news has reached the pool, beside the closed socket."""
        self.far[index].close()
        self.children[index].status = signal.SIGKILL
        if heard:
            self.children[index].ended.set()

    def kill(self, child: Child) -> None:
        self.end(self.children.index(child))

    @asynccontextmanager
    async def child(self, kind: str) -> AsyncIterator[Child]:
        if self.dead:
            raise ZygoteDied("the fork server ended")
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        child = Child(len(self.children), ours)
        self.children.append(child)
        self.far.append(theirs)
        wire.send(theirs, codec.pack(Card(CARD.name, 132)))  # the answer to the greeting
        try:
            yield child
        finally:
            ours.close()
            theirs.close()


async def with_runner(test: Callable[[GpuRunner, Server], Awaitable[None]]) -> None:
    server: Any = Server()
    runner = GpuRunner(CARD, server, 1 << 30)
    tasks = anyio.create_task_group()
    await tasks.__aenter__()
    tasks.start_soon(runner.serve)
    try:
        with anyio.fail_after(300):
            await test(runner, server)
    finally:
        tasks.cancel_scope.cancel()
        await tasks.__aexit__(None, None, None)


async def answered(runner: GpuRunner, server: Server, index: int) -> None:
    """Asks and answers one question of the runner `index`."""
    wire.send(server.far[index], codec.pack(NotCompiled(f"runner {index}")))
    assert await runner.ask(QUESTION, 100.0, NotCompiled) == NotCompiled(f"runner {index}")


async def started(runner: GpuRunner, count: int) -> None:
    while runner.starts < count:
        await checkpoint()


async def test_a_runner_that_dies_while_idle_is_replaced_before_anybody_asks() -> None:
    async def test(runner: GpuRunner, server: Server) -> None:
        async with runner.lease():
            await answered(runner, server, 0)
        server.end(0)
        await started(runner, 2)
        async with runner.lease():
            await answered(runner, server, 1)

    await with_runner(test)


@pytest.mark.parametrize("inside", [False, True])
async def test_a_death_that_only_the_socket_tells_of_is_not_the_next_candidates(inside: bool) -> None:
    async def test(runner: GpuRunner, server: Server) -> None:
        async with runner.lease():
            await answered(runner, server, 0)
        if not inside:
            server.end(0, heard=False)
        async with runner.lease():
            if inside:
                server.end(0, heard=False)
            with anyio.fail_after(200):
                asking = anyio.create_task_group()
                async with asking:

                    async def answer() -> None:
                        await started(runner, 2)
                        wire.send(server.far[1], codec.pack(NotCompiled("runner 1")))

                    asking.start_soon(answer)
                    assert await runner.ask(QUESTION, 100.0, NotCompiled) == NotCompiled("runner 1")

    await with_runner(test)


async def test_a_death_during_a_question_is_lost_and_the_next_lease_finds_a_new_runner() -> None:
    async def test(runner: GpuRunner, server: Server) -> None:
        async with runner.lease(), anyio.create_task_group() as tasks:

            async def die() -> None:
                await anyio.wait_readable(server.far[0])
                server.end(0)

            tasks.start_soon(die)
            with pytest.raises(RunnerLost) as lost:
                await runner.ask(QUESTION, 100.0, NotCompiled)
            assert lost.value.death is not None
            assert lost.value.death.describe() == "was killed by SIGKILL"
        async with runner.lease():
            await answered(runner, server, 1)

    await with_runner(test)


async def test_runners_that_die_unasked_again_and_again_end_in_one_failure() -> None:
    async def test(runner: GpuRunner, server: Server) -> None:
        for count in range(1, STARTS + 1):
            await started(runner, count)
            server.end(count - 1)
        with pytest.raises(RunnerFailed, match=r"GPU-1\): its runner does not start: it died before it was asked anything"):
            while True:
                async with runner.lease():
                    await checkpoint()
        assert runner.failed
        assert runner.starts == STARTS

    await with_runner(test)


async def test_without_a_fork_server_timing_torch_compile_is_the_gpus_failure() -> None:
    async def test(runner: GpuRunner, server: Server) -> None:
        async with runner.lease():
            server.dead = True
            with pytest.raises(RunnerFailed, match="the fork server ended"):
                await runner.time_compiled(QUESTION, 100.0)
        assert runner.failed

    await with_runner(test)


async def test_what_is_wrong_with_the_zygote_does_not_hide_that_the_runner_is_lost() -> None:
    async def test(runner: GpuRunner, server: Server) -> None:
        async with runner.lease():
            with pytest.raises(RunnerLost) as lost:
                await runner.ask(QUESTION, 0.01, NotCompiled)
            assert lost.value.death is None

    await with_runner(test)


async def test_candidates_and_who_shares_the_card_use_it_one_at_a_time_in_the_order_in_which_they_asked() -> None:
    async def test(runner: GpuRunner, server: Server) -> None:
        served: list[str] = []
        using: list[str] = []

        async def use(name: str) -> None:
            async with runner.lease_as_guest() if name.startswith("policy") else runner.lease():
                using.append(name)
                await checkpoint()
                assert using == [name]
                using.remove(name)
                served.append(name)

        names = ["candidate 1", "policy 1", "candidate 2", "candidate 3", "policy 2"]
        async with anyio.create_task_group() as tasks:
            async with runner.lease_as_guest():
                for place, name in enumerate(names):
                    tasks.start_soon(use, name)
                    while runner.waiting < 2 + place:
                        await checkpoint()
                assert not served
        assert served == names
        assert runner.waited_seconds > 0 < runner.guests_waited_seconds

    await with_runner(test)


async def test_a_guests_lease_needs_no_living_runner() -> None:
    async def test(runner: GpuRunner, server: Server) -> None:
        for count in range(1, STARTS + 1):
            await started(runner, count)
            server.end(count - 1)
        while not runner.failed:
            await checkpoint()
        async with runner.lease_as_guest():
            assert runner.waiting == 1
        assert runner.waiting == 0

    await with_runner(test)


async def test_an_answer_that_is_nonsense_is_our_failure_and_costs_the_runner() -> None:
    async def test(runner: GpuRunner, server: Server) -> None:
        async with runner.lease():
            wire.send(server.far[0], codec.pack(Card(CARD.name, 132)))
            with pytest.raises(EvaluatorFailed, match=r"GPU-1\) sent something else than NotCompiled or Failed"):
                await runner.ask(QUESTION, 100.0, NotCompiled)
        async with runner.lease():
            await answered(runner, server, 1)

    await with_runner(test)


async def test_a_runner_that_calls_itself_lost_is_replaced_and_its_answer_counts() -> None:
    async def test(runner: GpuRunner, server: Server) -> None:
        last = Failed(Status.OUT_OF_BOUNDS, "a kernel used an illegal memory address", lost=True)
        async with runner.lease():
            wire.send(server.far[0], codec.pack(last))
            assert await runner.ask(QUESTION, 100.0, NotCompiled) == last
        async with runner.lease():
            await answered(runner, server, 1)

    await with_runner(test)


def question(number: int, size: int = 0) -> bytes:
    return codec.pack(TimeCompiled(f"mine/{number}", "x" * size, precision=Precision.PYTORCH))


async def read(server: Server, index: int) -> str:
    """The name in the next question that a runner was sent after its greeting, which is read as it comes."""
    server.far[index].setblocking(False)

    async def exactly(count: int) -> bytes:
        found = b""
        while len(found) < count:
            try:
                found += server.far[index].recv(count - len(found))
            except BlockingIOError:
                await anyio.wait_readable(server.far[index])
        return found

    while True:
        header, _ = wire.sizes(await exactly(wire.PREFIX.size))
        asked = codec.unpack(wire.parse(await exactly(header)), Hello, TimeCompiled)
        if isinstance(asked, TimeCompiled):
            return asked.name


def nothing_to_read(server: Server, index: int) -> bool:
    try:
        return not server.far[index].recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True


class Line:
    """Candidates that ask a runner one after the other. What each has heard is in `heard`."""

    def __init__(self, runner: GpuRunner, tasks: Any) -> None:
        self.runner, self.tasks = runner, tasks
        self.heard: dict[int, Any] = {}
        self.scopes: dict[int, anyio.CancelScope] = {}

    async def add(self, number: int, *, known: bool = True, size: int = 0) -> None:
        """One more, who waits or has asked when this returns. known: whether its question is, when it begins to wait."""
        before = self.runner.waiting
        self.tasks.start_soon(self._ask, number, known, size)
        while self.runner.waiting == before:
            await checkpoint()

    async def _ask(self, number: int, known: bool, size: int) -> None:
        asked = question(number, size)
        with anyio.CancelScope() as self.scopes[number]:
            async with self.runner.lease(asked if known else None):
                try:
                    self.heard[number] = await self.runner.ask(asked, 100.0, NotCompiled)
                except RunnerLost as lost:
                    self.heard[number] = lost

    async def wait(self, *numbers: int) -> None:
        while not set(numbers) <= set(self.heard):
            await checkpoint()


async def in_line(test: Callable[[Line, Server], Awaitable[None]]) -> None:
    async def run(runner: GpuRunner, server: Server) -> None:
        await started(runner, 1)
        async with anyio.create_task_group() as tasks:
            await test(Line(runner, tasks), server)

    await with_runner(run)


def answer(server: Server, index: int, why: str) -> None:
    server.far[index].setblocking(True)
    wire.send(server.far[index], codec.pack(NotCompiled(why)))


@pytest.mark.parametrize("size", [0, 4 << 20], ids=["small", "more than a socket takes"])
async def test_the_next_question_is_at_the_runner_before_it_has_answered(size: int) -> None:
    async def test(line: Line, server: Server) -> None:
        for number in range(3):
            await line.add(number, size=size)
        assert await read(server, 0) == "mine/0"
        while nothing_to_read(server, 0):  # the first candidate alone has the lease
            await checkpoint()
        assert not line.heard
        answer(server, 0, "zero")
        assert await read(server, 0) == "mine/1"
        answer(server, 0, "one")
        await line.wait(0, 1)
        assert await read(server, 0) == "mine/2"
        answer(server, 0, "two")
        await line.wait(2)
        assert line.heard == {0: NotCompiled("zero"), 1: NotCompiled("one"), 2: NotCompiled("two")}
        assert len(server.children) == 1

    await in_line(test)


async def test_an_answer_may_come_before_anybody_waits_for_it() -> None:
    async def test(line: Line, server: Server) -> None:
        await line.add(0)
        await line.add(1)
        assert [await read(server, 0), await read(server, 0)] == ["mine/0", "mine/1"]
        answer(server, 0, "zero")
        answer(server, 0, "one")
        await line.wait(0, 1)
        assert line.heard == {0: NotCompiled("zero"), 1: NotCompiled("one")}

    await in_line(test)


async def test_nothing_is_sent_ahead_for_who_has_no_question_yet_or_stands_behind_a_guest() -> None:
    async def test(line: Line, server: Server) -> None:
        await line.add(0)
        await line.add(1, known=False)
        await line.add(2)
        assert await read(server, 0) == "mine/0"
        for _ in range(20):
            await checkpoint()
        assert nothing_to_read(server, 0)
        guest = anyio.Event()

        async def visit() -> None:
            async with line.runner.lease_as_guest():
                assert nothing_to_read(server, 0)
                guest.set()

        line.tasks.start_soon(visit)
        while line.runner.waiting < 4:
            await checkpoint()
        await line.add(3)
        for number in range(3):
            answer(server, 0, "told")
            await line.wait(number)
            if number < 2:
                assert await read(server, 0) == f"mine/{number + 1}"
        assert guest.is_set() or not line.heard.get(3)
        assert await read(server, 0) == "mine/3"
        assert guest.is_set()
        answer(server, 0, "told")
        await line.wait(3)

    await in_line(test)


@pytest.mark.parametrize("how", ["dies", "is lost"])
async def test_a_question_that_was_sent_to_a_lost_runner_is_asked_of_the_next_one(how: str) -> None:
    async def test(line: Line, server: Server) -> None:
        await line.add(0)
        await line.add(1)
        assert [await read(server, 0), await read(server, 0)] == ["mine/0", "mine/1"]
        if how == "dies":
            server.end(0)
        else:
            server.far[0].setblocking(True)
            wire.send(server.far[0], codec.pack(Failed(Status.CRASH, "mine", lost=True)))
        await line.wait(0)
        await started(line.runner, 2)
        assert await read(server, 1) == "mine/1"
        answer(server, 1, "one")
        await line.wait(1)
        assert line.heard[1] == NotCompiled("one")
        assert isinstance(line.heard[0], RunnerLost if how == "dies" else Failed)

    await in_line(test)


async def test_a_runner_that_dies_of_what_it_was_sent_ahead_is_lost_by_that() -> None:
    async def test(line: Line, server: Server) -> None:
        await line.add(0)
        await line.add(1)
        await line.add(2)
        assert [await read(server, 0), await read(server, 0)] == ["mine/0", "mine/1"]
        answer(server, 0, "zero")
        server.end(0)
        await line.wait(0, 1)
        assert line.heard[0] == NotCompiled("zero") and isinstance(line.heard[1], RunnerLost)
        await started(line.runner, 2)
        assert await read(server, 1) == "mine/2"
        answer(server, 1, "two")
        await line.wait(2)

    await in_line(test)


@pytest.mark.parametrize("answered_before", [False, True])
async def test_who_leaves_after_its_question_was_sent_ahead_costs_the_runner_and_no_other_candidate(
    answered_before: bool,
) -> None:
    async def test(line: Line, server: Server) -> None:
        await line.add(0)
        await line.add(1)
        await line.add(2)
        assert [await read(server, 0), await read(server, 0)] == ["mine/0", "mine/1"]
        if answered_before:
            answer(server, 0, "zero")
            line.scopes[1].cancel()
        else:
            line.scopes[1].cancel()
            while line.runner.waiting == 3:
                await checkpoint()
            assert nothing_to_read(server, 0)
            answer(server, 0, "zero")
        await line.wait(0)
        await started(line.runner, 2)
        assert await read(server, 1) == "mine/2"
        answer(server, 1, "two")
        await line.wait(2)
        assert line.heard == {0: NotCompiled("zero"), 2: NotCompiled("two")}

    await in_line(test)
