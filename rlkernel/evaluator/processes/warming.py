"""What a zygote does before it forks, so that its children find imports, compilers and caches warm."""

from __future__ import annotations

import importlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch

from rlkernel.evaluator import wire
from rlkernel.evaluator.compile.compiler import compile_program
from rlkernel.evaluator.cpu import patches
from rlkernel.evaluator.cpu.runner import run as run_on_cpu
from rlkernel.evaluator.devices import profile_of
from rlkernel.evaluator.messages import codec
from rlkernel.evaluator.messages.children import Binaries, CompileRequest, Ran, RoundInputs, RunRequest, TraceRequest, Traces
from rlkernel.evaluator.messages.endings import Failed, Unable
from rlkernel.evaluator.processes import sandbox
from rlkernel.evaluator.processes.jobs import RUNNER
from rlkernel.evaluator.program.schema import Program
from rlkernel.evaluator.program.tensors import meta_tensors
from rlkernel.evaluator.program.variant import Specs, Variant
from rlkernel.evaluator.trace.candidate import trace
from rlkernel.evaluator.trace.inductor import COMPILER
from rlkernel.types import Precision


def warm_up() -> None:
    """Run one honest candidate through tracing, compilation and the interpreter, so that children find imports, compiler and
    caches warm.

    Its kernel calls a function of CUDA's library, which is read for all children here."""
    sandbox.interpreter_paths()
    importlib.import_module("numpy.ma")  # which numpy imports in every run of a kernel
    importlib.import_module("torch._dynamo")  # which the first module would import, but inside of a trace, and so by half
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["TRITON_CACHE_DIR"] = scratch
        variant = Variant([[], {"dict": []}], [{"tensor": {"shape": [4, 16], "stride": [16, 1], "dtype": "float32"}}])
        traces, kept = trace(_HONEST, profile_of("h200"), [variant])
        (again,) = codec.unpack(codec.to_header(Traces(traces, kept)), Traces).traces
        compile_program(again.program, ([], meta_tensors(variant.specs.inputs)), profile_of("h200"), Path(scratch), {})
        _interpret(again.program, variant.specs)
        for kind in (TraceRequest, CompileRequest, Binaries, RunRequest, Ran, Failed, Unable):
            codec.form_of(kind)


def _interpret(program: Program, specs: Specs) -> None:
    """Run a Program of one input as a CPU runner does. Afterwards Triton is as it was, for those who trace and compile."""
    body = wire.Body()
    given = tuple(body.add(torch.zeros(tensor.shape)) for tensor in meta_tensors(specs.inputs))
    one = RoundInputs(0, 0, other=False, again=False, watched=(), init_inputs=(), state={}, inputs=given, first_inputs=())
    request = RunRequest(program, None, program, specs, "h200", Precision.PYTORCH, (one,), "", {}, None)
    with patches.taken_back():
        run_on_cpu(codec.to_header(request), b"".join(body.parts))


def warm_compiler() -> None:
    """Import what text in the style of torch.compile's output imports, for all children from now on. Where that starts a thread,
    with which a process of one thread could not fork any more, children import it themselves."""
    if _stays_alone(_import_compiler):
        _import_compiler()


def _import_compiler() -> None:
    for name in COMPILER:
        importlib.import_module(name)


def _stays_alone(action: Callable[[], None]) -> bool:
    """Whether a process that does this has one thread afterwards: a fork of this one tries it."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            action()
            status = int(len(os.listdir("/proc/self/task")) != 1)
        finally:
            os._exit(status)
    return os.waitpid(pid, 0)[1] == 0


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


def warm_up_runner() -> None:
    """Import what a runner would on first use: its own modules, and torch's shape functions, which take a second."""
    importlib.import_module(RUNNER)
    square = torch.empty(4, 4, device="meta")
    hidden = torch.nn.functional.gelu(torch.nn.functional.linear(square, square, square[0]))
    torch.nn.functional.layer_norm(hidden, (4,)).softmax(dim=-1).sum(dim=0)
