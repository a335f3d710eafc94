"""A trainer process: trains what the command assigns to it, until the command closes the channel.

`start` calls it. SIGTERM stops it at once, with the run ready to go on.
"""

from __future__ import annotations

import gc
import socket

import anyio
import torch
from anyio.streams.memory import MemoryObjectSendStream

from rlkernel.errors import EvaluatorEnded, explained
from rlkernel.policy.blocks import keep_programs
from rlkernel.training.interruption import interruptible
from rlkernel.training.loop import train
from rlkernel.training.placement import place
from rlkernel.training.side_by_side.channel import (
    GONE,
    Assignment,
    Channel,
    Ended,
    Lent,
    Unreadable,
    Verdict,
    open_channel,
)
from rlkernel.training.side_by_side.far_evaluator import FarEvaluator


class TrainerProcess:
    """The trainer's side of a channel: one reader, who hands answers to the evaluator of the run that trains."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._evaluator: FarEvaluator | None = None

    async def read(self, assignments: MemoryObjectSendStream[Assignment]) -> None:
        """Hand on what the command sends, until it closes the channel."""
        with assignments:
            try:
                while True:
                    try:
                        message: Assignment | Verdict | Lent = await self._channel.receive()
                    except Unreadable as error:  # nothing but an assignment has classes that are not ours
                        told = f"a run cannot be read by another process ({error}): put the module's folder on PYTHONPATH"
                        await self._channel.send(Ended(False, f"{told}, or use --together 1", 2))
                        continue
                    if isinstance(message, Assignment):
                        await assignments.send(message)
                    elif self._evaluator is not None:
                        self._evaluator.hear(message)
            except GONE:
                if self._evaluator is not None:
                    self._evaluator.hear_end()

    async def work(self) -> None:
        """Train one assignment after another."""
        sending, assigned = anyio.create_memory_object_stream[Assignment](1)
        async with anyio.create_task_group() as tasks, assigned:
            tasks.start_soon(self.read, sending)
            async for assignment in assigned:
                await self._channel.send(await self._train(assignment))
                # A trainer and its callbacks refer to each other: its model, moments and cache would stay beside the next run's.
                gc.collect()
                torch.cuda.empty_cache()

    async def _train(self, assignment: Assignment) -> Ended:
        if assignment.programs is not None:
            keep_programs(assignment.programs)
        self._evaluator = FarEvaluator(self._channel, assignment)
        try:
            place(assignment.run.device).limit_memory(assignment.config)
            finished = await train(
                assignment.run,
                assignment.directory,
                evaluator=self._evaluator,
                checkpoint_every=assignment.checkpoint_every,
                until=assignment.until,
                labels=assignment.labels,
            )
        except Exception as error:
            known = explained(error)
            if known is None or isinstance(error, EvaluatorEnded):
                raise
            return Ended(False, *known)
        finally:
            self._evaluator = None
        return Ended(finished)


def main(descriptor: int) -> int:
    """Train until the command is done: 0, or 130 where SIGTERM has ended it, of which the command tells."""

    async def work() -> None:
        async with open_channel(socket.socket(fileno=descriptor)) as channel:
            await TrainerProcess(channel).work()

    return 130 if anyio.run(interruptible, work) else 0
