"""The GPU runner: trusted Python, one per GPU. It takes a Program with its binaries, and answers with facts or a failure.

After an error that the context does not survive, it reports the verdict and ends; the pool starts another.
"""

from __future__ import annotations

import gc
import socket
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import torch

from rlkernel.errors import BrokenReference, one_line
from rlkernel.evaluator import wire
from rlkernel.evaluator.compile.binaries import Compiled
from rlkernel.evaluator.gpu import driver, fused_errors
from rlkernel.evaluator.gpu.checks import Strayed
from rlkernel.evaluator.gpu.compiled_reference import compiled_time
from rlkernel.evaluator.gpu.fused import Fused
from rlkernel.evaluator.gpu.liveness import Indispensable
from rlkernel.evaluator.gpu.problem import GpuProblem
from rlkernel.evaluator.gpu.rates import measure
from rlkernel.evaluator.gpu.session import Session
from rlkernel.evaluator.gpu.stopwatch import Hung, Stopwatch, lost, settle
from rlkernel.evaluator.gpu.subject import KernelTable, Subject, binary_of
from rlkernel.evaluator.gpu.trials import Unmeasured
from rlkernel.evaluator.gpu.tuning import NoConfig
from rlkernel.evaluator.judging.references.flags import set_precision
from rlkernel.evaluator.messages import codec
from rlkernel.evaluator.messages.endings import Broken, Ending, Failed
from rlkernel.evaluator.messages.gpu import (
    Card,
    CompiledTimes,
    Evaluate,
    Hello,
    Judged,
    Known,
    Measured,
    MeasureRates,
    Needed,
    NotCompiled,
    Study,
    TimeCompiled,
    Unstressed,
)
from rlkernel.evaluator.program import encoding
from rlkernel.evaluator.program.schema import MalformedProgram
from rlkernel.types import Status

Question = Hello | MeasureRates | Study | TimeCompiled | Evaluate
PROBLEMS_KEPT = 256
FREE_SHARE = 0.97
"""The share of what is free on the card, when the runner starts, that torch may take."""
KEEP_RESERVED = 24 << 30
"""Bytes of GPU memory that torch may hold on to between candidates."""


class Runner:
    """Serves one GPU."""

    def __init__(self) -> None:
        torch.cuda.init()
        torch.zeros(1, device="cuda")
        self.fused = Fused()
        fused_errors.kernels()  # now, so that no study waits for it
        self.stopwatch = Stopwatch(self.fused.flush)
        self._problems: OrderedDict[str, GpuProblem] = OrderedDict()
        self._subjects: list[Subject] = []
        """The Programs of the candidate that is judged."""
        self._held: Exception | None = None
        """What has cost the context. Its frames hold tensors, and giving these back may abort the process before it answers."""
        settle(60.0)
        gc.freeze()  # a collection then looks at what candidates leave alone

    def hello(self, question: Hello) -> Card:
        """Warm the libraries up, so that no candidate pays for it; float64, which only studies use, in the first runner alone."""
        free, total = torch.cuda.mem_get_info()
        torch.cuda.set_per_process_memory_fraction(min(question.memory_bytes, FREE_SHARE * free) / total)
        for dtype in (torch.float32, torch.float16, *((torch.bfloat16, torch.float64) if question.first else ())):
            square = torch.randn(1024, 1024, device="cuda", dtype=dtype)
            (torch.addmm(square[0], square, square) @ square).sum().item()
            torch.nn.functional.conv2d(
                square.view(4, 16, 128, 128), square.view(-1)[: 16 * 16 * 9].view(16, 16, 3, 3)
            ).sum().item()
        return Card(torch.cuda.get_device_name(0), torch.cuda.get_device_properties(0).multi_processor_count)

    def study(self, question: Study) -> Known | Broken | Unstressed:
        """Measure what is needed of a problem; `Unstressed` if inputs that no author draws cost the context."""
        set_precision(question.precision)
        try:
            problem = self._problem(question.source, question.name, question.replaced)
            reference = encoding.from_json(question.reference)
            return problem.study(reference, self.stopwatch, question.precision, stress=question.stress, shown=question.shown)
        except BrokenReference as error:
            return Broken(str(error))
        except Exception as error:  # whatever the reference's own code raises is told in one line
            if driver.lost_context() is None:
                return Broken(f"{question.name}: on the GPU: {one_line(error)}")
            self._held = error
            if question.stress:
                return Unstressed(lost=True)
            return Broken(f"{question.name}: on the GPU: {one_line(error)}", lost=True)

    def compiled(self, question: TimeCompiled) -> CompiledTimes | NotCompiled:
        """Time the reference under torch.compile. The process is of no other use afterwards."""
        set_precision(question.precision)
        return compiled_time(question.source, question.name, self.stopwatch)

    def evaluate(self, question: Evaluate, body: bytes) -> Judged | Needed | Failed:
        """Judge and time a candidate. Never raises for what it does."""
        set_precision(question.task.precision)
        answer = self._verdict(question, body)
        if not (isinstance(answer, Ending) and answer.lost):
            for subject in self._subjects:
                subject.release()
            self._subjects.clear()
            if isinstance(answer, Failed):  # an exception's frames hold tensors
                gc.collect()
            if torch.cuda.memory_stats_as_nested_dict()["reserved_bytes"]["all"]["current"] > KEEP_RESERVED:
                torch.cuda.empty_cache()
        return answer

    def _problem(self, source: str, name: str, replaced: Sequence[str]) -> GpuProblem:
        for known in self._problems.values():
            known.forget()
        key = name + source
        if key not in self._problems:
            self._problems[key] = GpuProblem(source, name, replaced)
            if len(self._problems) > PROBLEMS_KEPT:
                self._problems.popitem(last=False)
        return self._problems[key]

    def _verdict(self, question: Evaluate, body: bytes) -> Judged | Needed | Failed:
        try:
            return self._examine(question, body)
        except Exception as error:  # what the GPU reports of the candidate's work, and what a forged Program makes torch raise
            answer = ending(error, question.task.seconds)
            if answer.lost:
                self._held = error
            return answer

    def _examine(self, question: Evaluate, body: bytes) -> Judged:
        task, seconds = question.task, question.task.seconds
        problem = self._problem(task.source, task.name, task.replaced)
        cubins = {key: wire.raw(span, body) for key, span in question.cubins.items()}
        loaded: dict[str, driver.Kernel] = {}
        kernels, other_kernels = (_loaded(table, cubins, loaded) for table in (task.kernels.program, task.kernels.other))
        subject = Subject(task.program, kernels, loaded, seconds)
        other = None if task.other is None else Subject(task.other, other_kernels, loaded, seconds)
        session = Session(
            problem, question.known, self.fused, subject, other, task.precision, seconds,
            stopwatch=self.stopwatch, modal=task.modal, timing_width=task.timing_width, found=task.live, spins=task.spins,
        )  # fmt: skip
        self._subjects = [subject] if other is None else [subject, other]
        judged = whole_stay(session)
        settle(seconds)
        for kernel in loaded.values():
            kernel.unload()
        return judged


def _loaded(table: KernelTable, cubins: dict[str, bytes], loaded: dict[str, driver.Kernel]) -> KernelTable:
    """The configurations whose binaries are in `loaded` now. One that does not load is dropped where another one does; raises
    DriverError where none does."""
    kept: dict[str, dict[int, Compiled]] = {}
    for step, configs in table.items():
        kept[step] = {}
        refused: driver.DriverError | None = None
        for choice, facts in configs.items():
            try:
                if facts.key not in loaded:
                    loaded[facts.key] = driver.Kernel(binary_of(facts), cubins[facts.key])
                kept[step][choice] = facts
            except driver.DriverError as error:
                refused = error
        if refused is not None and not kept[step]:
            raise refused
    return kept


def _timeout(seconds: float) -> Failed:
    return Failed(Status.TIMEOUT, f"forward takes more than {seconds:g} s on the GPU", lost=True)


def whole_stay(session: Session) -> Judged:
    """One candidate's stay from its first round to its last: measured only if every output matched."""
    session.prepare()
    match, live, other_mode = session.rounds()
    measured: Measured | None = None
    if match.matches:
        timed, host_us, match = session.trials()
        measured = Measured(timed, host_us, tuple(session.rows(timed.candidate_us))) if match.matches else None
    return Judged(match.matches, match.detail, other_mode, session.worst, session.subject.choices, live, measured, session.close)


def ending(error: Exception, seconds: float) -> Needed | Failed:
    """What becomes of a candidate whose stay ended with `error`: by the driver's error number, not by text. A kernel that still
    runs gets so many seconds."""
    if isinstance(error, Indispensable):
        return Needed(error.function, error.found, error.spun, lost=True)
    if isinstance(error, Strayed):
        return Failed(Status.OUT_OF_BOUNDS, str(error), lost=True)
    if isinstance(error, Hung):
        return _timeout(seconds)
    try:
        code = lost(seconds)
    except Hung:
        return _timeout(seconds)
    if code is None:
        return _failure(error)
    status, detail = driver.STATUS_OF_ERROR.get(code, (Status.CRASH, f"the GPU reports error {code}"))
    return Failed(status, detail, lost=True)


def _failure(error: Exception) -> Failed:
    """The verdict on a candidate whose stay ended with `error`, and left the context as it was."""
    if isinstance(error, MalformedProgram):
        return Failed(Status.CRASH, f"the trace is not a Program: {error}")
    if isinstance(error, NoConfig):
        return Failed(Status.RUNTIME_ERROR, "no configuration of a kernel can be launched on this GPU")
    if isinstance(error, Unmeasured):
        return Failed(Status.RUNTIME_ERROR, str(error))
    if isinstance(error, torch.cuda.OutOfMemoryError) or "out of memory" in str(error):
        return Failed(Status.RUNTIME_ERROR, "forward needs more GPU memory than a candidate may have")
    return Failed(Status.RUNTIME_ERROR, one_line(error)[:300])


def serve(sock: socket.socket) -> None:
    """Answer until the pool closes the socket, or until the context is lost."""
    runner: Runner | None = None
    while (message := wire.receive(sock)) is not None:
        question: Question = codec.unpack(message[0], Hello, MeasureRates, Study, TimeCompiled, Evaluate)
        if isinstance(question, Hello):
            runner = Runner()
        assert runner is not None
        answer = _answer(runner, question, message[1])
        wire.send(sock, codec.pack(answer))
        if isinstance(question, TimeCompiled) or (isinstance(answer, Ending) and answer.lost):
            return


def _answer(runner: Runner, question: Question, body: bytes) -> Any:
    if isinstance(question, Hello):
        return runner.hello(question)
    if isinstance(question, MeasureRates):
        return measure(runner.stopwatch)
    if isinstance(question, Study):
        return runner.study(question)
    return runner.compiled(question) if isinstance(question, TimeCompiled) else runner.evaluate(question, body)
