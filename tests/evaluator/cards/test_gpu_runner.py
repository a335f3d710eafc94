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
from rlkernel.evaluator.messages.gpu import Card, NotCompiled, TimeCompiled
from rlkernel.evaluator.processes.child import Child
from rlkernel.evaluator.processes.fork_server import ZygoteDied
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
