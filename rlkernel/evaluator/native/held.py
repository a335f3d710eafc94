"""The referee's end of a candidate's process: it is forked, asked with a deadline, watched, and ended with what it started."""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from rlkernel.evaluator import wire
from rlkernel.evaluator.messages import codec
from rlkernel.evaluator.messages.native import NativeEnd, Raised
from rlkernel.evaluator.native import candidate

SCRATCH_BYTES = 1 << 30
"""What a candidate may write in all."""
MAX_ANSWER = 1 << 35
"""Bytes of one answer; outputs of KernelBench's largest problems take gigabytes."""
LOOK_SECONDS = 0.1
"""Time between two looks at the pool's socket, the deadline and the scratch folder."""
END_SECONDS = 10.0
"""How long a killed process may take to be gone."""
T = TypeVar("T")


class HeldEnded(Exception):
    """The candidate's process can be asked no more, or its candidate has failed."""

    def __init__(self, ended: NativeEnd, detail: str) -> None:
        super().__init__(detail)
        self.ended = ended
        self.detail = detail


class PoolGone(Exception):
    """Nobody waits for the referee's answer any more."""


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer, its body, and the seconds between the question and the answer's first byte."""

    message: Any
    body: bytes
    seconds: float


class Held:
    """One candidate's process. `hold` makes it; leaving its context leaves nothing of it."""

    def __init__(self, pid: int, sock: socket.socket, pool: socket.socket, scratch: Path, seconds: float) -> None:
        self._pid, self._sock, self._pool, self._scratch = pid, sock, pool, scratch
        self._left = seconds
        self._sock.setblocking(False)

    def ask(self, question: Any, kind: type[T]) -> Answered:
        """The answer, a message of `kind`. Raises HeldEnded, or PoolGone."""
        deadline = time.perf_counter() + self._left
        try:
            return self._ask(codec.pack(question), kind, deadline)
        except (BrokenPipeError, ConnectionResetError):
            raise self._died() from None
        except wire.BadMessage as error:
            raise HeldEnded(NativeEnd.DIED, f"its process sent {error}") from None
        finally:
            self._left = max(0.0, deadline - time.perf_counter())

    def _ask(self, data: bytes, kind: type[T], deadline: float) -> Answered:
        since = time.perf_counter()
        view = memoryview(data)
        while view:
            self._wait(deadline, writing=True)
            view = view[self._sock.send(view) :]
        prefix = self._exactly(wire.PREFIX.size, deadline)
        seconds = time.perf_counter() - since
        header, body = wire.sizes(prefix, MAX_ANSWER)
        text = self._exactly(header, deadline)
        raw = self._exactly(body, deadline)
        answer: T | Raised = codec.unpack(wire.parse(text), kind, Raised)
        if isinstance(answer, Raised):
            raise HeldEnded(NativeEnd.RAISED, answer.detail)
        return Answered(answer, raw, seconds)

    def _exactly(self, count: int, deadline: float) -> bytes:
        buffer = bytearray(count)
        view, done = memoryview(buffer), 0
        while done < count:
            self._wait(deadline, writing=False)
            with suppress(BlockingIOError):
                got = self._sock.recv_into(view[done:])
                if got == 0:
                    raise self._died()
                done += got
        view.release()
        return bytes(buffer)

    def _wait(self, deadline: float, *, writing: bool) -> None:
        """Wait until the socket can be used. Raises HeldEnded at the deadline or when too much is written, and PoolGone."""
        mine = self._sock.fileno()
        while True:
            left = deadline - time.perf_counter()
            if left <= 0:
                raise HeldEnded(NativeEnd.TIMEOUT, "it took too long")
            reading = [self._pool.fileno()] if writing else [self._pool.fileno(), mine]
            readable, writable, _ = select.select(reading, [mine] if writing else [], [], min(left, LOOK_SECONDS))
            if self._pool.fileno() in readable:
                raise PoolGone
            if mine in readable or mine in writable:
                return
            if _bytes_below(self._scratch) > SCRATCH_BYTES:
                raise HeldEnded(NativeEnd.DIED, f"it wrote more than {SCRATCH_BYTES >> 20} MiB")

    def _died(self) -> HeldEnded:
        """How a process ended whose socket is closed."""
        until = time.perf_counter() + 1.0
        while time.perf_counter() < until:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            if pid:
                self._pid = 0
                how = (
                    f"was killed by {signal.Signals(os.WTERMSIG(status)).name}"
                    if os.WIFSIGNALED(status)
                    else f"exited with status {os.WEXITSTATUS(status)}"
                )
                late = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU
                return HeldEnded(NativeEnd.TIMEOUT if late else NativeEnd.DIED, f"its process {how}")
            time.sleep(0.01)
        return HeldEnded(NativeEnd.DIED, "its process closed its socket")

    def end(self, group: int) -> None:
        """Kill the process and all that it has started, and wait until they are gone."""
        self._sock.close()
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
        until = time.perf_counter() + END_SECONDS
        while time.perf_counter() < until:
            try:
                if os.waitpid(-group, os.WNOHANG)[0] == 0:
                    time.sleep(0.005)
            except ChildProcessError:  # none of the group is left, orphans included
                return


@contextmanager
def hold(enclose: Callable[[], None], pool: socket.socket, scratch: Path, seconds: float) -> Iterator[Held]:
    """A process that waits to be told of a candidate. `enclose` runs in it first: it fences it in, in a group of its own.

    Called before this process has threads or a GPU context, neither of which survives a fork.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    pid = os.fork()
    if pid == 0:
        _live(theirs, (ours, pool), enclose)
    theirs.close()
    held = Held(pid, ours, pool, scratch, seconds)
    try:
        yield held
    finally:
        held.end(pid)


def _live(sock: socket.socket, others: tuple[socket.socket, ...], enclose: Callable[[], None]) -> None:
    """The life of the held process, which never returns."""
    status = 1
    try:
        for other in others:
            other.close()
        enclose()
        candidate.serve(sock)
        status = 0
    finally:
        os._exit(status)


def _bytes_below(folder: Path) -> int:
    """Bytes of all files below a folder; what vanishes meanwhile counts nothing."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(path, name)).st_blocks * 512
    return total
