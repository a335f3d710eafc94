"""What each kind of child does with the socket that it is given. All but the trusted ones lock themselves in first."""

from __future__ import annotations

import gc
import importlib
import os
import socket
import tempfile
from pathlib import Path

from rlkernel.evaluator import wire
from rlkernel.evaluator.compile.compiler import OutsideStorage, compile_program
from rlkernel.evaluator.compile.files import FILE_BYTES
from rlkernel.evaluator.compile.signature import CompileFailed, MachineLacks
from rlkernel.evaluator.cpu.runner import run as run_on_cpu
from rlkernel.evaluator.devices import profile_of
from rlkernel.evaluator.judging.oracle import Oracle
from rlkernel.evaluator.judging.survey import survey
from rlkernel.evaluator.messages import codec
from rlkernel.evaluator.messages.children import Binaries, CompileRequest, TraceRequest, Traces
from rlkernel.evaluator.messages.endings import Failed, Unable
from rlkernel.evaluator.messages.forking import Fork
from rlkernel.evaluator.messages.native import NativeRequest
from rlkernel.evaluator.messages.survey import SurveyRequest
from rlkernel.evaluator.native import referee
from rlkernel.evaluator.native.held import SCRATCH_BYTES
from rlkernel.evaluator.processes import fence, sandbox
from rlkernel.evaluator.program.compiled_ahead import Asked
from rlkernel.evaluator.program.replay import StepFailed
from rlkernel.evaluator.program.schema import MalformedProgram
from rlkernel.evaluator.program.tensors import meta_tensors
from rlkernel.evaluator.trace.candidate import Verdict, trace
from rlkernel.evaluator.trace.warmup import NeedsKernel
from rlkernel.types import Status

SELDOM = (10_000, 10, 100)
"""How seldom garbage is collected in a trace, which makes little: nearly all that is made is kept. As often as Python does it, it
takes a third of the time, since all that torch has made is looked at, too."""


def _trace_job(sock: socket.socket, fork: Fork) -> None:
    """Answer one `TraceRequest`, locked."""
    message = wire.receive(sock)
    if message is None:
        return
    gc.unfreeze()  # host code that walks through all objects meets all of them
    gc.set_threshold(*SELDOM)
    sandbox.lock(cpu_seconds=fork.cpu_seconds, memory_bytes=fork.memory_bytes)
    request = codec.unpack(message[0], TraceRequest)
    try:
        profile = profile_of(request.profile)
        answer: Traces | Asked | Failed = Traces(*trace(request.source, profile, request.variants, request.known, request.timed))
    except Verdict as verdict:
        answer = Failed(verdict.status, verdict.detail)
    except NeedsKernel as needs:
        answer = needs.asked
    packed = codec.pack(answer)
    if not wire.fits(packed):  # e.g. many launches with many configurations each
        packed = codec.pack(
            Failed(Status.UNTRACEABLE, "forward records too much: launch fewer kernels, with fewer configurations")
        )
    wire.send(sock, packed)


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
        answer: Binaries | Failed | Unable = _compiled(codec.unpack(message[0], CompileRequest), fork, body)
    except CompileFailed as error:
        answer = Failed(Status.COMPILE_ERROR, error.detail)
    except MachineLacks as error:
        answer = Unable(error.number, error.path)
    except OutsideStorage as error:
        answer = Failed(Status.OUT_OF_BOUNDS, str(error))
    except (MalformedProgram, StepFailed) as error:
        answer = Failed(Status.CRASH, f"the trace is not a Program: {error}")
    wire.send(sock, codec.pack(answer, body))


_PTXAS_MEMORY = "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=33554432:glibc.malloc.top_pad=16777216"
"""The memory of ptxas comes in large pages and large steps, where the kernel gives them: it touches 600, not 3,300."""
_HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage")
"""Where the C library reads whether the kernel gives large pages; one that may not read it uses none."""


def _compiled(request: CompileRequest, fork: Fork, body: wire.Body) -> Binaries:
    """The binaries of a Program's launches, those that are new in `body`. Confines this process first."""
    directory, scratch = Path(request.directory), Path(request.scratch)
    readable = (directory, _HUGE_PAGES)
    sandbox.confine(
        cpu_seconds=fork.cpu_seconds, memory_bytes=fork.memory_bytes, file_bytes=FILE_BYTES, writable=(scratch,),
        readable=readable,
    )  # fmt: skip
    os.environ["TRITON_CACHE_DIR"] = str(scratch)
    os.environ["GLIBC_TUNABLES"] = _PTXAS_MEMORY
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
    importlib.import_module(RUNNER).serve(sock)


def _referee_job(sock: socket.socket, fork: Fork) -> None:
    """Answer one `NativeRequest`. This child is trusted; what it forks for the candidate is fenced in."""
    fence.hide_memory()
    fence.adopt_orphans()
    me = os.getpid()

    def enclose(request: NativeRequest) -> None:
        limits = fence.Limits(fork.cpu_seconds, request.memory_bytes, SCRATCH_BYTES)
        fence.enclose(me, limits, Path(request.scratch), gpu=request.device != "cpu")

    referee.serve(sock, enclose)


RUNNER = "rlkernel.evaluator.gpu.runner"
"""The runner's module, imported by name because it needs cuda-bindings, which a machine without a GPU may lack."""
JOBS = {
    "runner": _runner_job,
    "trace": _trace_job,
    "run": _run_job,
    "compile": _compile_job,
    "oracle": _oracle_job,
    "survey": _survey_job,
    "referee": _referee_job,
}
