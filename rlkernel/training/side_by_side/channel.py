"""Messages between a command and its trainer processes, over a socket: values, pickled, each after its length."""

from __future__ import annotations

import pickle
import socket
import struct
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import UNIXSocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from rlkernel.config import Run
from rlkernel.errors import one_line
from rlkernel.evaluator.config import EvaluatorConfig
from rlkernel.types import Evaluation, Problem

LENGTH = struct.Struct("<Q")
GONE = (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError, anyio.ClosedResourceError)
"""What a channel raises when the other process has ended, or has closed its end."""


@dataclass(frozen=True)
class Assignment:
    """A run to train, and what judges it. The rest is as `rlkernel.training.loop.train` has it."""

    run: Run
    directory: Path
    checkpoint_every: int
    until: float | None
    labels: Mapping[str, str]
    programs: Path | None
    """Where compiled samplers are kept, or None."""
    config: EvaluatorConfig
    described: Mapping[str, Any]
    """The evaluator as a manifest has it."""
    shares: bool
    """Whether evaluations and the policy use the same card."""


@dataclass(frozen=True)
class Ended:
    """The end of an assignment. told, status: what the command is to print and to exit with (`rlkernel.errors.explained`), where
    an error has ended it."""

    finished: bool
    told: str = ""
    status: int = 0


@dataclass(frozen=True)
class Candidate:
    """A candidate to judge. number: what the verdict is to name."""

    number: int
    problem: Problem
    code: str | None


@dataclass(frozen=True)
class Verdict:
    """The verdict on a candidate; of a reference or an evaluator that failed, the error instead. waited: see
    `CardEvaluator.waited_seconds`, of all runs that share the evaluator."""

    number: int
    evaluation: Evaluation | None
    error: str = ""
    broken_reference: bool = False
    waited: tuple[float, float] | None = None


@dataclass(frozen=True)
class Wanted:
    """The trainer's policy wants the shared card for itself."""

    number: int


@dataclass(frozen=True)
class Lent:
    """The card is the policy's until it is given back."""

    number: int
    waited: tuple[float, float] | None


@dataclass(frozen=True)
class GivenBack:
    """The policy's work on the card has finished."""

    number: int


class Unreadable(Exception):
    """A message of classes that this process cannot import; the text is one line of Python's own words."""


class Channel:
    """One end of the socket between a command and a trainer process. `send` and `receive` raise one of `GONE` when the other end
    is gone."""

    def __init__(self, stream: UNIXSocketStream) -> None:
        self._stream = stream
        self._incoming = BufferedByteReceiveStream(stream)
        self._sending = anyio.Lock()

    async def send(self, message: Any, *, last: bool = False) -> None:
        """Send a message. Being cancelled waits until all of it is sent, since half a message would make nonsense of those that
        follow; last: whether none would follow, so that it need not."""
        data = pickle.dumps(message)
        with anyio.CancelScope(shield=not last):
            async with self._sending:
                await self._stream.send(LENGTH.pack(len(data)) + data)

    async def close(self) -> None:
        """Close this end, which tells the other one that nothing more will come."""
        await self._stream.aclose()

    async def receive(self) -> Any:
        """The next message. Raises Unreadable; the one after it can be received all the same."""
        (length,) = LENGTH.unpack(await self._incoming.receive_exactly(LENGTH.size))
        data = await self._incoming.receive_exactly(length)
        try:
            return pickle.loads(data)
        except Exception as error:  # a module of the user's own is imported, which may raise anything
            raise Unreadable(one_line(error)) from error


@asynccontextmanager
async def open_channel(sock: socket.socket) -> AsyncIterator[Channel]:
    """The channel over one end of a socket pair, which it closes."""
    async with await UNIXSocketStream.from_socket(sock) as stream:
        yield Channel(stream)
