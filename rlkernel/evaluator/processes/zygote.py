"""The zygote: a process that imports torch and triton once, never runs candidates itself, and forks a child per job.

It owns exactly one thread, or a fork could copy a locked lock. It speaks over one socket with the pool, in the words of
`rlkernel.evaluator.messages.forking`; a `Fork` comes with the child's end of a socket pair attached.
"""

from __future__ import annotations

import array
import gc
import importlib
import json
import os
import random
import select
import signal
import socket
import sys
import tempfile
import traceback
from pathlib import Path

import numpy as np
import torch

from rlkernel.evaluator import wire
from rlkernel.evaluator.compile.compiler import CompileFailed, OutsideStorage, compile_program
from rlkernel.evaluator.cpu.runner import run as run_on_cpu
from rlkernel.evaluator.devices import profile_of
from rlkernel.evaluator.judging.oracle import Oracle
from rlkernel.evaluator.judging.survey import survey
from rlkernel.evaluator.messages import codec
from rlkernel.evaluator.messages.children import Binaries, CompileRequest, Ran, RunRequest, TraceRequest, Traces
from rlkernel.evaluator.messages.endings import Failed
from rlkernel.evaluator.messages.forking import Exited, Fork, Forked, Kill, Ready
from rlkernel.evaluator.messages.native import NativeRequest
from rlkernel.evaluator.messages.survey import SurveyRequest
from rlkernel.evaluator.native import referee
from rlkernel.evaluator.native.held import SCRATCH_BYTES
from rlkernel.evaluator.processes import fence, sandbox
from rlkernel.evaluator.program.replay import StepFailed
from rlkernel.evaluator.program.schema import MalformedProgram
from rlkernel.evaluator.program.tensors import meta_tensors
from rlkernel.evaluator.program.variant import Variant
from rlkernel.evaluator.trace.candidate import Verdict, trace
from rlkernel.types import Status


def _trace_job(sock: socket.socket, fork: Fork) -> None:
    """Answer one `TraceRequest`, locked."""
    message = wire.receive(sock)
    if message is None:
        return
    gc.unfreeze()  # host code that walks through all objects meets all of them
    sandbox.lock(cpu_seconds=fork.cpu_seconds, memory_bytes=fork.memory_bytes)
    request = codec.unpack(message[0], TraceRequest)
    try:
        answer: Traces | Failed = Traces(trace(request.source, profile_of(request.profile), request.variants))
    except Verdict as verdict:
        answer = Failed(verdict.status, verdict.detail)
    wire.send(sock, codec.pack(answer))


def _run_job(sock: socket.socket, fork: Fork) -> None:
    """Answer one `RunRequest`, locked."""
    message = wire.receive(sock)
    if message is None:
        return
    sandbox.lock(cpu_seconds=fork.cpu_seconds, memory_bytes=fork.memory_bytes)
    wire.send(sock, run_on_cpu(*message))


def _survey_job(sock: socket.socket, fork: Fork) -> None:
    """Answer one `SurveyRequest`, locked: a reference of a data set is a stranger's code."""
    message = wire.receive(sock)
    if message is None:
        return
    sandbox.lock(cpu_seconds=fork.cpu_seconds, memory_bytes=fork.memory_bytes)
    wire.send(sock, codec.pack(survey(codec.unpack(message[0], SurveyRequest).about)))


def _compile_job(sock: socket.socket, fork: Fork) -> None:
    """Answer one `CompileRequest`. ptxas is started from here, so files are confined but system calls are not."""
    message = wire.receive(sock)
    if message is None:
        return
    body = wire.Body()
    try:
        answer: Binaries | Failed = _compiled(codec.unpack(message[0], CompileRequest), fork, body)
    except CompileFailed as error:
        answer = Failed(Status.COMPILE_ERROR, error.detail)
    except OutsideStorage as error:
        answer = Failed(Status.OUT_OF_BOUNDS, str(error))
    except (MalformedProgram, StepFailed) as error:
        answer = Failed(Status.CRASH, f"the trace is not a Program: {error}")
    wire.send(sock, codec.pack(answer, body))


def _compiled(request: CompileRequest, fork: Fork, body: wire.Body) -> Binaries:
    """The binaries of a Program's launches, those that are new in `body`. Confines this process first."""
    directory, scratch = Path(request.directory), Path(request.scratch)
    sandbox.confine(cpu_seconds=fork.cpu_seconds, memory_bytes=fork.memory_bytes, writable=(scratch,), readable=(directory,))
    os.environ["TRITON_CACHE_DIR"] = str(scratch)
    tempfile.tempdir = str(scratch)
    specs = meta_tensors(request.specs.init_inputs), meta_tensors(request.specs.inputs)
    profile, configs = profile_of(request.profile), request.configs
    made = compile_program(request.program, specs, profile, directory, "all" if configs is None else configs)
    return Binaries(made.kernels, {key: body.add_bytes(cubin) for key, cubin in made.binaries.items()})


def _oracle_job(sock: socket.socket, fork: Fork) -> None:
    """Answer until the pool closes the socket."""
    del fork
    oracle = Oracle()
    while (message := wire.receive(sock)) is not None:
        wire.send(sock, oracle.handle(*message))


def _runner_job(sock: socket.socket, fork: Fork) -> None:
    """Answer until the pool closes the socket. This child is trusted: it owns the GPU that this process was started for."""
    del fork
    importlib.import_module(_RUNNER).serve(sock)


def _referee_job(sock: socket.socket, fork: Fork) -> None:
    """Answer one `NativeRequest`. This child is trusted; what it forks for the candidate is fenced in."""
    fence.hide_memory()
    fence.adopt_orphans()
    me = os.getpid()

    def enclose(request: NativeRequest) -> None:
        limits = fence.Limits(fork.cpu_seconds, request.memory_bytes, SCRATCH_BYTES)
        fence.enclose(me, limits, Path(request.scratch), gpu=request.device != "cpu")

    referee.serve(sock, enclose)


_RUNNER = "rlkernel.evaluator.gpu.runner"
"""The runner's module, imported by name because it needs cuda-bindings, which a machine without a GPU may lack."""
_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "OMP_NUM_THREADS": "1", "LANG": "C.UTF-8",
    "USER": "candidate", "LOGNAME": "candidate", "TORCHINDUCTOR_CACHE_DIR": "/",
    "TORCH_WARM_POOL": "0",
}  # fmt: skip
"""What a child is told of the machine. Parts of torch ask for the user's name and a folder when they are imported, and torch's
compiler starts processes. The password file is hidden from a locked process, which may start nothing and write nowhere: its
folder is one that is there."""
JOBS = {
    "runner": _runner_job,
    "trace": _trace_job,
    "run": _run_job,
    "compile": _compile_job,
    "oracle": _oracle_job,
    "survey": _survey_job,
    "referee": _referee_job,
}


def _child(sock: socket.socket, fork: Fork, parent: int) -> None:
    """The life of a child, which never returns. It holds no descriptor but its socket; 0, 1 and 2 are /dev/null."""
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1):
            os.dup2(null, fd)
        trusted = fork.kind in ("oracle", "runner", "referee")
        if not trusted:
            sandbox.die_with(parent)  # a candidate that sleeps would outlive a zygote that is killed
            os.dup2(null, 2)
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

    def say(self, message: Ready | Forked | Exited) -> None:
        self.control.send(json.dumps(codec.to_header(message)).encode())

    def fork(self, request: Fork, fd: int) -> None:
        _alone()
        me = os.getpid()
        pid = os.fork()
        if pid == 0:
            _child(socket.socket(fileno=fd), request, me)
        os.close(fd)
        self.running[pid] = request.number
        self.say(Forked(request.number, pid))

    def reap(self) -> None:
        """Tell the pool of every child that has ended, and kill what it left behind."""
        while self.running:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            self._group_kill(pid)
            self.say(Exited(self.running.pop(pid), status))

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
                data, ancillary, _, _ = self.control.recvmsg(1 << 16, socket.CMSG_SPACE(4))
                if not data:
                    break
                request: Fork | Kill = codec.unpack(wire.parse(data), Fork, Kill)
                if isinstance(request, Kill):
                    self.kill(request.number)
                    continue
                fds = array.array("i")
                fds.frombytes(ancillary[0][2][:4])
                self.fork(request, fds[0])


def _warm_up() -> None:
    """Run one honest candidate through tracing and compilation, so that children find imports, compiler and caches warm.

    Its kernel calls a function of CUDA's library, which is read for all children here."""
    sandbox.interpreter_paths()
    importlib.import_module("numpy.ma")  # which numpy imports in every run of a kernel
    importlib.import_module("torch._dynamo")  # which the first module would import, but inside of a trace, and so by half
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["TRITON_CACHE_DIR"] = scratch
        variant = Variant([[], {"dict": []}], [{"tensor": {"shape": [4, 16], "stride": [16, 1], "dtype": "float32"}}])
        (traced,) = trace(_HONEST, profile_of("h200"), [variant])
        (again,) = codec.unpack(codec.to_header(Traces((traced,))), Traces).traces
        compile_program(again.program, ([], meta_tensors(variant.specs.inputs)), profile_of("h200"), Path(scratch), {})
        for kind in (TraceRequest, CompileRequest, Binaries, RunRequest, Ran, Failed):
            codec.form_of(kind)


_HONEST = """
import torch, triton
import triton.language as tl
import torch.nn as nn

@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.erf(tl.load(x + i, mask=i < n)) + tl.sum(tl.load(x + i, mask=i < n)), mask=i < n)

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
    random.seed(0)
    np.random.seed(0)
    control = socket.socket(fileno=int(sys.argv[1]))
    if os.environ["CUDA_VISIBLE_DEVICES"]:  # a runner's zygote forks nothing else
        _warm_up_runner()
    else:
        _warm_up()
    gc.freeze()  # a child's collections then look at what it makes itself, and leave the pages that it shares as they are
    gc.enable()
    _alone()  # here, so that the pool does not open at all
    Zygote(control).serve()
