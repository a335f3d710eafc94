"""The zygote: a process that imports torch and triton once, never runs candidates itself, and forks a child per job.

It owns exactly one thread, or a fork could copy a locked lock. It speaks over one socket with the pool:
    in   {"id", "kind", "cpu_seconds", "memory_bytes", "arguments"} with the child's end of a socket pair attached;  {"kill": id}
    out  {"ready": pid}, {"id", "pid"}, {"id", "exit": status as waitpid gives it}
"""

from __future__ import annotations

import array
import importlib
import json
import os
import select
import signal
import socket
import sys
import tempfile
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from rlkernel.evaluator import wire
from rlkernel.evaluator.compile.compiler import CompileFailed, OutsideStorage, compile_program
from rlkernel.evaluator.cpu.runner import run as run_on_cpu
from rlkernel.evaluator.devices import PROFILES
from rlkernel.evaluator.judging.oracle import Oracle
from rlkernel.evaluator.processes import sandbox
from rlkernel.evaluator.program import schema as programs
from rlkernel.evaluator.program.replay import StepFailed
from rlkernel.evaluator.program.tensors import meta_tensors
from rlkernel.evaluator.trace.candidate import trace
from rlkernel.types import Status


def _trace_job(sock: socket.socket, request: dict[str, Any]) -> None:
    """Trace one candidate, locked in; see `trace.candidate.trace` for the messages."""
    message = wire.receive(sock)
    if message is None:
        return
    sandbox.lock(cpu_seconds=request["cpu_seconds"], memory_bytes=request["memory_bytes"])
    wire.send(sock, wire.pack(trace(message[0])))


def _run_job(sock: socket.socket, request: dict[str, Any]) -> None:
    """Run one Program by ATen and Triton's interpreter, locked in; see `cpu.runner.run` for the messages."""
    message = wire.receive(sock)
    if message is None:
        return
    sandbox.lock(cpu_seconds=request["cpu_seconds"], memory_bytes=request["memory_bytes"])
    wire.send(sock, run_on_cpu(*message))


def _compile_job(sock: socket.socket, request: dict[str, Any]) -> None:
    """Compile the launches of a Program. The child starts ptxas, so its files are confined but its system calls are not.

    in   {"program", "specs": {"init_inputs", "inputs"}, "profile", "configs": "all" | {forward step: config}}
    out  {"kernels": {step: {config: facts}}, "binaries": {key: entry}} and the new binaries' bytes, see `binaries.collect`
    """
    message = wire.receive(sock)
    if message is None:
        return
    header = message[0]
    directory, scratch = Path(request["arguments"]["directory"]), Path(request["arguments"]["scratch"])
    sandbox.confine(
        cpu_seconds=request["cpu_seconds"], memory_bytes=request["memory_bytes"], writable=(scratch,), readable=(directory,)
    )
    os.environ["TRITON_CACHE_DIR"] = str(scratch)
    tempfile.tempdir = str(scratch)
    body = wire.Body()
    try:
        specs, configs = header["specs"], header["configs"]
        made = compile_program(
            programs.from_json(header["program"]),
            (meta_tensors(specs["init_inputs"]), meta_tensors(specs["inputs"])),
            PROFILES[header["profile"]],
            directory,
            configs if configs == "all" else {int(k): v for k, v in configs.items()},
        )
        reply: dict[str, Any] = {
            "kernels": {step: {str(i): asdict(c) for i, c in found.items()} for step, found in made.kernels.items()},
            "binaries": {key: body.add_bytes(cubin) for key, cubin in made.binaries.items()},
        }
    except CompileFailed as error:
        reply = {"status": str(Status.COMPILE_ERROR), "detail": error.detail}
    except OutsideStorage as error:
        reply = {"status": str(Status.OUT_OF_BOUNDS), "detail": str(error)}
    except (programs.MalformedProgram, StepFailed) as error:
        reply = {"status": str(Status.CRASH), "detail": f"the trace is not a Program: {error}"}
    wire.send(sock, wire.pack(reply, body))


def _oracle_job(sock: socket.socket, request: dict[str, Any]) -> None:
    """Serve as an oracle, which answers until the pool closes the socket."""
    del request
    oracle = Oracle()
    while (message := wire.receive(sock)) is not None:
        wire.send(sock, oracle.handle(*message))


def _runner_job(sock: socket.socket, request: dict[str, Any]) -> None:
    """Serve as the runner, which is trusted and owns the GPU that this process was started for."""
    del request
    importlib.import_module(_RUNNER).serve(sock)


_RUNNER = "rlkernel.evaluator.gpu.runner"
"""The runner's module, imported by name because it needs cuda-bindings, which a machine without a GPU may lack."""
JOBS = {"runner": _runner_job, "trace": _trace_job, "run": _run_job, "compile": _compile_job, "oracle": _oracle_job}


def _child(sock: socket.socket, request: dict[str, Any], parent: int) -> None:
    """Be a child. This never returns. It holds no descriptor but its socket, and a candidate's 0, 1 and 2 are /dev/null."""
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1):
            os.dup2(null, fd)
        trusted = request["kind"] in ("oracle", "runner")
        if not trusted:
            sandbox.die_with(parent)  # a candidate that sleeps would outlive a zygote that is killed
            os.dup2(null, 2)
        keep = sock.fileno()
        os.closerange(3, keep)
        os.closerange(keep + 1, 4096)
        if request["kind"] != "runner":  # which keeps what names its GPU
            os.environ.clear()
            os.environ.update(PATH="/usr/bin:/bin", HOME="/nonexistent", OMP_NUM_THREADS="1", LANG="C.UTF-8")
        JOBS[request["kind"]](sock, request)
        status = 0
    except Exception as error:  # ours, or a candidate's that slipped through: either way the pool is told and goes on
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
        detail = f"internal error while {request['kind']}: {text[:300]}"
        wire.send(sock, wire.pack({"status": str(Status.CRASH), "detail": detail, "lost": True}))
    finally:
        sys.stderr.flush()
        os._exit(status)


def _threads() -> int:
    return len(os.listdir("/proc/self/task"))


class Zygote:
    """The zygote's loop, which forks and kills on request and reports exits."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.running: dict[int, int] = {}
        """The job's id of each living child, by its process id."""

    def say(self, message: dict[str, Any]) -> None:
        """Tell the pool. Raises OSError if it is gone."""
        self.control.send(json.dumps(message).encode())

    def fork(self, request: dict[str, Any], fd: int) -> None:
        """Fork the child of one request; `fd` is its end of its socket. Raises RuntimeError if there are other threads."""
        if _threads() != 1:
            raise RuntimeError(f"the zygote has {_threads()} threads; forking would copy their locks")
        me = os.getpid()
        pid = os.fork()
        if pid == 0:
            _child(socket.socket(fileno=fd), request, me)
        os.close(fd)
        self.running[pid] = request["id"]
        self.say({"id": request["id"], "pid": pid})

    def reap(self) -> None:
        """Tell the pool of every child that has ended, and kill what it left behind."""
        while self.running:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            self._group_kill(pid)
            self.say({"id": self.running.pop(pid), "exit": status})

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
            self.say({"ready": os.getpid()})
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
                data, ancillary, _, _ = self.control.recvmsg(1 << 16, socket.CMSG_SPACE(4))
                if not data:
                    break
                request = json.loads(data)
                if "kill" in request:
                    self.kill(request["kill"])
                    continue
                fds = array.array("i")
                fds.frombytes(ancillary[0][2][:4])
                self.fork(request, fds[0])


def _warm_up() -> None:
    """Run one honest candidate through tracing and compilation, so that children find imports, compiler and caches warm."""
    sandbox.interpreter_paths()
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["TRITON_CACHE_DIR"] = scratch
        tensor = {"shape": [4, 16], "stride": [16, 1], "dtype": "float32"}
        variant = {"init_args": [[], {"dict": []}], "inputs": [{"tensor": tensor}]}
        found = trace({"source": _HONEST, "profile": "h200", "variants": [variant]})
        program = programs.from_json(found["traces"][0]["program"])
        compile_program(program, ([], meta_tensors([tensor])), PROFILES["h200"], Path(scratch), {})


_HONEST = """
import torch, triton
import triton.language as tl
import torch.nn as nn

@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.exp(tl.load(x + i, mask=i < n)) + tl.sum(tl.load(x + i, mask=i < n)), mask=i < n)

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(16, 16)
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
        return y
"""


def _warm_up_runner() -> None:
    """Import what a runner would on first use: its own modules, and torch's shape functions, which take a second."""
    importlib.import_module(_RUNNER)
    square = torch.empty(4, 4, device="meta")
    hidden = torch.nn.functional.gelu(torch.nn.functional.linear(square, square, square[0]))
    torch.nn.functional.layer_norm(hidden, (4,)).softmax(dim=-1).sum(dim=0)


def main() -> None:
    """Be a zygote, whose end of the control socket has the number in the first argument."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    control = socket.socket(fileno=int(sys.argv[1]))
    if os.environ["CUDA_VISIBLE_DEVICES"]:  # a runner's zygote forks nothing else
        _warm_up_runner()
    else:
        _warm_up()
    Zygote(control).serve()


if __name__ == "__main__":
    main()
