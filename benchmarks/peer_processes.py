"""The processes of KernelGYM and KernelBench from outside: they are started, asked, timed and ended here. `peer_runs` runs in
them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks.peer_pairs import ROOT, Item, System
from benchmarks.peer_report import Row
from benchmarks.peer_runs import TASK_SECONDS


class PeerFailed(RuntimeError):
    """A peer's process could not be started or ended without an answer; the message says what it printed last."""


class PeerProcess:
    """One process of a peer. Its packages are found through PYTHONPATH alone, its Triton cache is its system's own."""

    def __init__(self, system: System, paths: Sequence[Path], scratch: Path) -> None:
        ours, theirs = socket.socketpair()
        self.log = scratch / f"{system}.log"
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, (*paths, ROOT))),
            "TRITON_CACHE_DIR": str(scratch / f"triton-{system}"),
            "LOG_DIR": str(scratch),
            "PYTHONWARNINGS": "ignore",
        }
        code = f"from benchmarks.peer_runs import {system}; {system}({theirs.fileno()})"
        with self.log.open("ab") as log, theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-c", code], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=scratch, env=environment,
                pass_fds=(theirs.fileno(),), start_new_session=True,
            )  # fmt: skip
        self.connection = Connection(ours.detach())

    def receive(self, seconds: float) -> Row:
        """Wait for one message. Raises TimeoutError, or PeerFailed when the process has ended."""
        try:
            if not self.connection.poll(max(0.0, seconds)):
                raise TimeoutError(f"no answer in {seconds:.0f} s")
            return dict(json.loads(self.connection.recv_bytes()))
        except (EOFError, ConnectionError) as error:
            tail = self.log.read_text(errors="replace").strip().splitlines()[-1:] or ["it printed nothing"]
            raise PeerFailed(f"the process ended without an answer: {tail[0][:200]}") from error

    def ask(self, item: Item, seconds: float) -> Row:
        reference, candidate = item.pair.sources()
        request = {"name": f"{item.pair.name}_{item.repeat}", "reference": reference, "candidate": candidate}
        try:
            self.connection.send_bytes(json.dumps(request).encode())
        except ConnectionError:
            return self.receive(0.0)
        return self.receive(seconds)

    def close(self) -> None:
        """Hang up, wait, then end whatever is left of it: the peer's workers are in its session."""
        self.connection.close()
        try:
            self.process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            self.process.kill()
        finally:
            with suppress(ProcessLookupError):  # nothing of the session is left, as it should be
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


class Peers:
    """The peers' processes: KernelGYM's driver is kept, KernelBench's process serves one candidate."""

    def __init__(self, paths: dict[System, list[Path]], scratch: Path) -> None:
        self.paths = paths
        self.scratch = scratch
        self.kept: PeerProcess | None = None

    def evaluate(self, item: Item, seconds: float) -> Row:
        """Evaluate one item, as a row. A peer that breaks is a row, too, which says `broken`."""
        try:
            return self._kernelgym(item, seconds) if item.system == "kernelgym" else self._kernelbench(item, seconds)
        except (PeerFailed, TimeoutError) as error:
            self.close()
            return broken(error)

    def _kernelgym(self, item: Item, seconds: float) -> Row:
        start = time.perf_counter()
        if self.kept is None:
            self.kept = PeerProcess("kernelgym", self.paths["kernelgym"], self.scratch)
            self.kept.receive(min(seconds, 120.0))
        since = time.perf_counter()
        answer = self.kept.ask(item, seconds - (since - start))
        return {**answer, "wall_s": time.perf_counter() - since, "start_s": since - start}

    def _kernelbench(self, item: Item, seconds: float) -> Row:
        start = time.perf_counter()
        process = PeerProcess("kernelbench", self.paths["kernelbench"], self.scratch)
        try:
            process.receive(min(seconds, 120.0))
            answer = process.ask(item, min(seconds - (time.perf_counter() - start), TASK_SECONDS["kernelbench"]))
        finally:
            process.close()
        wall = time.perf_counter() - start
        return {**answer, "wall_s": wall, "slot_s": wall}  # the script takes the next candidate when the process has ended

    def close(self) -> None:
        if self.kept is not None:
            self.kept.close()
            self.kept = None


def broken(error: Exception) -> Row:
    """The row of a system that gave no answer: neither accepted nor refused. A later run tries again."""
    return {"accepted": False, "broken": True, "speedup": None, "wall_s": None, "slot_s": None, "detail": str(error)}
