"""A trainer process: trains what the command assigns to it, until the command closes the channel.

`python -m rlkernel.training.side_by_side.trainer_process FD`, where FD is its end of the socket. SIGTERM stops it at once, with
the run ready to go on; so does the end of the command.
"""

from __future__ import annotations

import gc
import socket
import sys

import anyio
import torch
from anyio.streams.memory import MemoryObjectSendStream

from rlkernel.errors import EvaluatorEnded, exit_status, usage_error
from rlkernel.policy.blocks import keep_programs
from rlkernel.training.interruption import interruptible
from rlkernel.training.loop import train
from rlkernel.training.placement import place
from rlkernel.training.side_by_side.channel import GONE, Assignment, Channel, Ended, Lent, Verdict, open_channel
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
                    message: Assignment | Verdict | Lent = await self._channel.receive()
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
            known = usage_error(error)
            if known is None or isinstance(error, EvaluatorEnded):
                raise
            return Ended(False, str(known))
        finally:
            self._evaluator = None
        return Ended(finished)


def main(descriptor: int) -> int:
    """Train until the command is done. Raises KeyboardInterrupt where SIGTERM has ended it."""

    async def work() -> None:
        async with open_channel(socket.socket(fileno=descriptor)) as channel:
            await TrainerProcess(channel).work()

    if anyio.run(interruptible, work):
        raise KeyboardInterrupt
    return 0


if __name__ == "__main__":
    sys.exit(exit_status(lambda: main(int(sys.argv[1]))))
