"""The zygote: a process that imports torch and triton once, never runs candidates itself, and forks a child per job.

It owns exactly one thread, or a fork could copy a locked lock. It speaks over one socket with the pool, in the words of
`rlkernel.evaluator.messages.forking`; a `Fork` comes with the child's end of a socket pair attached, and with a pipe to print to
if somebody wants to read it.
"""

from __future__ import annotations

import io
import json
import os
import random
import select
import shutil
import signal
import socket
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import numpy as np
import torch

from rlkernel.evaluator import wire
from rlkernel.evaluator.messages import codec
from rlkernel.evaluator.messages.endings import Failed
from rlkernel.evaluator.messages.forking import Exited, Fork, Forked, Kill, Ready
from rlkernel.evaluator.processes import heap, sandbox, warming
from rlkernel.evaluator.processes.jobs import JOBS
from rlkernel.types import Status

_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "OMP_NUM_THREADS": "1", "LANG": "C.UTF-8",
    "USER": "candidate", "LOGNAME": "candidate", "TORCHINDUCTOR_CACHE_DIR": "/",
    "TORCH_WARM_POOL": "0",
}  # fmt: skip
"""What a child is told of the machine. Parts of torch ask for the user's name and a folder when they are imported, and torch's
compiler starts processes. The password file is hidden from a locked process, which may start nothing and write nowhere: its
folder is one that is there."""


SEVERAL = 2
"""The child from which on torch's compiler is imported for all: that takes a second, which one evaluation may want ten times and
most want never."""


def _child(sock: socket.socket, fork: Fork, parent: int, heard: Sequence[int]) -> None:
    """The life of a child, which never returns. It holds no descriptor but its socket; 0, 1 and 2 are /dev/null. heard: the pipe
    that 1 and 2 are instead, if there is one."""
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        said = heard[0] if heard else null
        for fd, place in ((null, 0), (said, 1)):
            os.dup2(fd, place)
        trusted = fork.kind in ("oracle", "runner", "referee")
        if not trusted:
            sandbox.die_with(parent)  # a candidate that sleeps would outlive a zygote that is killed
            os.dup2(said, 2)
        if heard:  # unbuffered, as by `python -u`: a child may end at any moment, and what it has said by then is wanted
            sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), "utf-8", "replace", write_through=True)
        keep = sock.fileno()
        os.closerange(3, keep)
        os.closerange(keep + 1, 4096)
        if fork.kind not in ("runner", "referee"):  # which keep what names their GPU
            os.environ.clear()
            os.environ.update(_ENVIRONMENT)
            if trusted:
                os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.getcwd()  # the zygote's scratch folder
        JOBS[fork.kind](sock, fork)
        status = 0
    except Exception as error:  # ours, or a candidate's that slipped through: either way the pool is told and goes on
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
        detail = f"internal error while {fork.kind}: {text[:300]}"
        wire.send(sock, codec.pack(Failed(Status.CRASH, detail, lost=True)))
    finally:
        sys.stderr.flush()
        os._exit(status)


def _alone() -> None:
    """Raises RuntimeError where something that was imported has started a thread."""
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        raise RuntimeError(f"the zygote has {threads} threads; forking would copy their locks")


class Zygote:
    """The zygote's loop, which forks and kills on request and reports exits."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.running: dict[int, int] = {}
        """Process id -> the child's number."""
        self._compiled = 0
        """The children so far that import torch's compiler."""

    def say(self, message: Ready | Forked | Exited) -> None:
        self.control.send(json.dumps(codec.to_header(message)).encode())

    def fork(self, request: Fork, fds: Sequence[int]) -> None:
        """Fork a child. fds: its end of the socket pair, and the pipe that it prints to if there is one."""
        _alone()
        self._compiled += request.compiler
        if request.compiler and self._compiled == SEVERAL:
            with mock.patch.dict(os.environ, _ENVIRONMENT, clear=True):
                warming.warm_compiler()
            heap.settle()
        me = os.getpid()
        pid = os.fork()
        if pid == 0:
            _child(socket.socket(fileno=fds[0]), request, me, fds[1:])
        for fd in fds:
            os.close(fd)
        self.running[pid] = request.number
        self.say(Forked(request.number, pid))

    def reap(self) -> None:
        """Tell the pool of every child that has ended, and kill what it left behind."""
        while self.running:
            pid, status, used = os.wait4(-1, os.WNOHANG)
            if pid == 0:
                return
            self._group_kill(pid)
            self.say(Exited(self.running.pop(pid), status, used.ru_utime + used.ru_stime))

    @staticmethod
    def _group_kill(pid: int) -> None:
        """Kill a child and what it started (ptxas), which shares its session's group."""
        try:
            os.killpg(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return

    def kill(self, job: int) -> None:
        """Kill the child of one job, if it still runs."""
        for pid, number in self.running.items():
            if number == job:
                self._group_kill(pid)

    def serve(self) -> None:
        """Serve until the pool closes its end or is gone; then no child is left."""
        read, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(write)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        try:
            self.say(Ready(os.getpid()))
            self._answer(read)
        finally:  # the pool may be gone already, and then telling it of an end raises
            for pid in self.running:
                self._group_kill(pid)

    def _answer(self, read: int) -> None:
        """Answer requests until the pool closes its end. A child's end makes the descriptor `read` readable."""
        while True:
            ready = select.select([self.control.fileno(), read], [], [])[0]
            if read in ready:
                os.read(read, 4096)
                self.reap()
            if self.control.fileno() in ready:
                data, fds, _, _ = socket.recv_fds(self.control, 1 << 16, 2)
                if not data:
                    break
                request: Fork | Kill = codec.unpack(wire.parse(data), Fork, Kill)
                if isinstance(request, Kill):
                    self.kill(request.number)
                    continue
                self.fork(request, fds)


def main() -> None:
    """Be a zygote, whose end of the control socket has the number in the first argument. The second one is its folder, which it
    removes at its end: a pool that was killed cannot."""
    try:
        _main()
    finally:
        shutil.rmtree(sys.argv[2], ignore_errors=True)


def _main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    control = socket.socket(fileno=int(sys.argv[1]))
    if os.environ["CUDA_VISIBLE_DEVICES"]:  # a runner's zygote forks nothing else
        warming.warm_up_runner()
    else:
        sandbox.check()
        warming.warm_up()
    heap.settle()
    _alone()  # here, so that the pool does not open at all
    Zygote(control).serve()
