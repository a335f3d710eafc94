"""What both paths of an evaluation share: questions to children, and what becomes of their deaths, silence and nonsense."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.to_thread

from rlkernel.errors import BrokenReference, EvaluatorFailed, lacking
from rlkernel.evaluator import wire
from rlkernel.evaluator.clock import Clock
from rlkernel.evaluator.compile import binaries
from rlkernel.evaluator.config import EvaluatorConfig
from rlkernel.evaluator.devices import profile_of
from rlkernel.evaluator.draws import key_of
from rlkernel.evaluator.ended import Ended
from rlkernel.evaluator.messages import codec
from rlkernel.evaluator.messages.children import Binaries, CompileRequest, PriceRequest, Prices, TraceRequest, Traces
from rlkernel.evaluator.messages.endings import Broken, Failed, Unable
from rlkernel.evaluator.messages.judgement import KnownInput
from rlkernel.evaluator.messages.oracle import About, Brief, Fit, Fits, Lengthen, Lengthened, Longer, Prepare, Vary
from rlkernel.evaluator.messages.survey import Survey, SurveyRequest
from rlkernel.evaluator.processes.child import Child, ChildDied
from rlkernel.evaluator.processes.fork_server import ForkServer
from rlkernel.evaluator.processes.spending import BACKSTOP
from rlkernel.evaluator.program.compiled_ahead import MOST_ASKED, Asked, KernelFacts
from rlkernel.evaluator.program.schema import MalformedProgram, Program
from rlkernel.evaluator.program.variant import Kept, Specs, Traced, Variant
from rlkernel.evaluator.trace.inductor import names_compiler
from rlkernel.types import Problem, Status

T = TypeVar("T")
MAY_SAY = {
    "trace": {Status.INVALID, Status.UNTRACEABLE, Status.INCONSISTENT, Status.RUNTIME_ERROR, Status.CRASH},
    "compile": {Status.COMPILE_ERROR, Status.OUT_OF_BOUNDS, Status.CRASH},
    "run": {Status.RUNTIME_ERROR, Status.OUT_OF_BOUNDS, Status.COMPILE_ERROR, Status.UNTRACEABLE, Status.CRASH},
    "survey": {Status.CRASH},
}
"""Failures that a child may report of its candidate; a success is never a child's to report."""
_MAX_BODY = {"trace": 0, "compile": 1 << 28, "run": 1 << 29, "survey": 0}
_WHAT = {"trace": "tracing ModelNew", "compile": "compiling", "run": "running the kernels", "survey": "running the reference"}


class Stages:
    """Asks children, on behalf of one evaluation after the other."""

    def __init__(self, server: ForkServer, config: EvaluatorConfig, directory: Path) -> None:
        self.config = config
        self._server = server
        self._directory = directory
        """Where binaries are kept."""
        self._briefs: dict[tuple[str, bool], Brief] = {}
        """A problem's source, and whether times are modelled -> what is known of it."""
        self._fits: dict[tuple[str, int], Fits] = {}
        """A problem's source, and how much smaller -> at which sizes it is judged."""

        self._longer: dict[tuple[str, int | None, bool], tuple[Longer, ...]] = {}
        """A problem's source as it is judged, and how often sizes are halved at least -> longer sizes for a second look."""
        self._varied: dict[tuple[str, bool], tuple[Longer, ...]] = {}
        """A problem's source as a candidate is right at it, and whether sizes are as at full shape -> other values of these."""
        self.places: dict[str, str] | None = None
        """What was wrong with an output -> where its values differ; None where no person asks (`Pool.places`)."""

    def about(self, problem: Problem) -> About:
        """The problem as the oracle takes it."""
        return About(problem.name, problem.source, self.config.profile, self.config.precision)

    async def key(self, problem: Problem, code: str, traces: tuple[Traced, ...]) -> str:
        """What everything of an evaluation is drawn from. The traces are part of it, so that no trace can hold what follows."""
        seed = self.config.seed

        def made() -> str:
            return key_of(
                seed, problem.source, code, {"message": "Traces", "traces": codec.form_of(tuple[Traced, ...]).encode(traces)}
            )

        return key_of(None) if seed is None else await anyio.to_thread.run_sync(made)  # it encodes whole Programs

    async def ask_oracle(
        self, oracle: Child, question: Any, *answers: type[T], body: bytes = b"", patience: int = 1
    ) -> tuple[T, bytes]:
        """The answer to a question with a body, and its body. The oracle is trusted: its death, silence or nonsense is our
        failure. `patience` is a factor on the time that it has.

        Raises EvaluatorFailed or BrokenReference.
        """
        name = getattr(getattr(question, "about", None), "name", "")
        named, seconds = f" {name}" if name else "", patience * self.config.limits.oracle_seconds
        who = f"the process that runs the reference{named}"
        packed = await anyio.to_thread.run_sync(codec.head, question, len(body))
        with anyio.CancelScope(shield=True):  # half an exchange would leave its answer to the next candidate
            try:
                with anyio.fail_after(seconds):
                    header, found = await oracle.ask(packed, body)
                answer: T | Failed | Broken = codec.unpack(header, *answers, Failed, Broken)
            except ChildDied as death:
                again = "; if it does so again, the file itself ends it" if name else ""
                raise EvaluatorFailed(f"{who} {death.describe()}{again}") from death
            except TimeoutError:
                raise EvaluatorFailed(f"{who} had not answered after {seconds} s") from None
            except wire.BadMessage as error:
                raise EvaluatorFailed(f"{who} sent {error}") from error
        if isinstance(answer, Failed):
            raise EvaluatorFailed(f"{who}: {answer.detail}")
        if isinstance(answer, Broken):
            raise BrokenReference(answer.why)
        return answer, found

    async def fitted(self, oracle: Child, problem: Problem, memory_bytes: int | None, smaller: int = 0) -> Fits:
        """The problem's file at sizes that can be judged here, chosen once per problem and `smaller` (see `fit_for_cpu`). Raises
        as `ask_oracle` does."""
        if (problem.source, smaller) not in self._fits:
            question = Fit(self.about(problem), memory_bytes, smaller)
            self._fits[problem.source, smaller], _ = await self.ask_oracle(oracle, question, Fits, patience=5)
        return self._fits[problem.source, smaller]

    async def lengthened(
        self, oracle: Child, problem: Problem, halvings: int | None = 0, *, heads_pay: bool = False
    ) -> tuple[Longer, ...]:  # fmt: skip
        """Longer sizes at which a problem, as `fitted` gives it, may be judged besides; found once per problem and question
        (see `judging.sizes.lengthening`). Raises as `ask_oracle` does."""
        key = problem.source, halvings, heads_pay
        if key not in self._longer:
            question = Lengthen(self.about(problem), halvings, heads_pay)
            found, _ = await self.ask_oracle(oracle, question, Lengthened, patience=5)
            self._longer[key] = found.looks
        return self._longer[key]

    async def varied(self, oracle: Child, problem: Problem, *, whole: bool = False) -> tuple[Longer, ...]:
        """Other values of the smaller sizes of a problem; found once per problem (see `judging.sizes.varying`). whole: those of
        the full shape, of one size after the other. Raises as `ask_oracle` does."""
        key = problem.source, whole
        if key not in self._varied:
            found, _ = await self.ask_oracle(oracle, Vary(self.about(problem), whole), Lengthened, patience=5)
            self._varied[key] = found.looks
        return self._varied[key]

    def as_fitted(self, problem: Problem) -> Problem:
        """The problem at the sizes that `fitted` has chosen first; as it is where none were chosen yet."""
        found = self._fits.get((problem.source, 0))
        return problem if found is None else replace(problem, source=found.source)

    def known(self, problem: Problem) -> Brief | None:
        """What is known of a problem whose times are modelled; None before it was judged."""
        return self._briefs.get((self.as_fitted(problem).source, True))

    async def brief(self, oracle: Child, problem: Problem, *, modelled: bool = True) -> Brief:
        """What an evaluation must know of the problem, whose times are modelled or measured; asked once per problem. Raises as
        `ask_oracle` does."""
        key = problem.source, modelled
        if key not in self._briefs:
            found, _ = await self.ask_oracle(oracle, Prepare(self.about(problem), modelled), Brief)
            self._briefs[key] = found
        return self._briefs[key]

    async def job(self, kind: str, question: Any, seconds: int, *wanted: type[T], body: bytes = b"") -> tuple[T, bytes, float]:
        """The answer of a child that is forked for this one question with its body, the answer's body, and the processor seconds
        that it took. The child is untrusted: its death, silence or nonsense becomes the candidate's verdict. Raises Ended."""
        packed = await anyio.to_thread.run_sync(codec.head, question, len(body))  # it may hold whole Programs
        try:
            compiler = isinstance(question, TraceRequest) and names_compiler(question.source)
            (header, found), spent = await self._answer(kind, packed, body, seconds, compiler=compiler)

            def unpacked() -> T | Failed:
                made: T | Failed = codec.unpack(header, *wanted, Failed)
                return made

            answer = await anyio.to_thread.run_sync(unpacked)  # it may be long
        except ChildDied as death:
            if death.signal == signal.SIGXCPU or death.processor_seconds >= seconds:  # which may have ignored it
                raise Ended(Status.TIMEOUT, f"{_WHAT[kind]} took more than {seconds} s of processor time") from None
            raise Ended(Status.CRASH, f"the process that was {_WHAT[kind]} {death.describe()}") from None
        except wire.BadMessage as error:
            raise nonsense(kind, error) from None
        except MalformedProgram as error:
            raise Ended(Status.CRASH, f"the trace is not a Program: {error}") from error
        if isinstance(answer, Failed):
            if answer.status in MAY_SAY[kind]:
                end = Ended(answer.status, answer.detail)
                end.at_full = answer.at_full
                raise end
            raise Ended(Status.CRASH, f"the process that was {_WHAT[kind]} sent a verdict that is not its to give")
        return answer, found, spent

    async def _answer(
        self, kind: str, packed: bytes, body: bytes, seconds: int, *, compiler: bool
    ) -> tuple[tuple[dict[str, Any], bytes], float]:
        """What a child of this kind sends, which may compute for so many seconds of its processor time, and wait for as many; and
        the processor seconds that it took. What compiles may wait for longer: for ptxas. Raises Ended, ChildDied and
        wire.BadMessage."""
        memory, most = self.config.limits.memory_bytes, BACKSTOP * seconds
        answer: tuple[dict[str, Any], bytes] | None = None
        try:
            with anyio.fail_after(most):
                async with self._server.child(kind, cpu_seconds=seconds, memory_bytes=memory, compiler=compiler) as child:
                    with self._server.waiting_at_most(most if kind == "compile" else seconds, child):
                        answer = await child.ask(packed, body, max_body=_MAX_BODY[kind])
        except TimeoutError:
            raise Ended(Status.TIMEOUT, f"{_WHAT[kind]} took more than {most} s of wall time") from None
        if answer is None:
            raise Ended(Status.TIMEOUT, f"{_WHAT[kind]} waited for more than {seconds} s")
        return answer, child.processor_seconds

    async def trace(
        self, code: str, variants: Sequence[Variant], clock: Clock, known: tuple[KernelFacts, ...] = (), timed: Kept | None = None
    ) -> tuple[Traces, tuple[KernelFacts, ...]]:
        """One traced candidate per variant, traced again for each kernel that it compiles ahead; and what is known of these.
        `known` and `timed`: what an earlier trace at other sizes has found, see `TraceRequest`. Raises Ended."""
        before, compiled = len(known), 0.0
        while True:
            request = TraceRequest(code, self.config.profile, tuple(variants), known, timed)
            found: Traces | Asked
            with clock.stage("trace"):
                found, _, _ = await self.job("trace", request, self.config.limits.trace_seconds, Traces, Asked)
            if not isinstance(found, Asked):
                break
            if len(known) - before == MOST_ASKED:
                raise Ended(Status.UNTRACEABLE, f"the host asks about more than {MOST_ASKED} kernels before they are launched")
            with clock.stage("compile"):
                facts, spent = await self._facts(found)
            known, compiled, most = (*known, facts), compiled + spent, self.config.limits.compile_seconds
            if compiled > most:  # of all together: each may take that long
                raise Ended(Status.TIMEOUT, f"{_WHAT['compile']} ahead took more than {most} s of processor time")
        if len(found.traces) != len(variants):
            raise Ended(Status.CRASH, "the trace is not a Program: another number of traces")
        return found, known

    async def _facts(self, asked: Asked) -> tuple[KernelFacts, float]:
        """What is known of a kernel once it is compiled, in the fastest configuration that compiles, and the processor seconds
        that this took. Raises Ended."""
        orders = await self.orders(asked.program, asked.specs, asked.key) if asked.chooses else None
        compiled, spent = await self._compiled(asked.program, asked.specs, orders)
        for index, made in compiled.facts.get("0", {}).items():
            size = (made.registers, made.spills, made.shared_bytes, made.num_warps, made.num_ctas)
            chosen = dict(enumerate(asked.offered)).get(index, 0)
            return KernelFacts(asked.key, *size, chosen=chosen), spent
        raise Ended(Status.CRASH, "the trace is not a Program: nothing to compile ahead")

    async def orders(
        self, full: Program, specs: Specs, key: str, known: tuple[KnownInput, ...] = ()
    ) -> dict[int, tuple[int, ...]]:
        """The configurations of autotuned launches from the fastest to the slowest, by modelled time. `key`: what the programs
        that are followed are drawn from; `known`: the whole numbers that forward is given. Raises Ended."""
        question = PriceRequest(full, specs, self.config.profile, key, known)
        return (await self.job("run", question, self.config.limits.run_seconds, Prices))[0].orders

    async def survey(self, problem: Problem) -> Survey:
        """What is known of a problem's reference, found in a process of its own: its death or silence is the reference's."""
        question = SurveyRequest(self.about(problem))
        try:
            found, _, _ = await self.job("survey", question, self.config.limits.survey_seconds, Survey)
        except Ended as end:
            return Survey(broken=f"{problem.name}: {end.detail}")
        return found

    async def compile(self, program: Program, specs: Specs, configs: dict[int, tuple[int, ...]] | None) -> binaries.Kernels:
        """The binaries of every launch. `configs`: forward step -> its configurations in the order in which to try them, of
        which the first that compiles is taken; None for all that work. Raises Ended, or UsageError for what the machine lacks."""
        return (await self._compiled(program, specs, configs))[0]

    async def _compiled(
        self, program: Program, specs: Specs, configs: dict[int, tuple[int, ...]] | None
    ) -> tuple[binaries.Kernels, float]:
        """The binaries, as `compile` says, and the processor seconds that they took."""
        profile, directory = self.config.profile, self._directory
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="compile-", dir=self._server.scratch) as scratch:
            request = CompileRequest(program, specs, profile, configs, str(directory), scratch)
            found: Binaries | Unable
            found, body, spent = await self.job("compile", request, self.config.limits.compile_seconds, Binaries, Unable)
        if isinstance(found, Unable):
            raise lacking(found.number, found.path) or nonsense("compile", wire.BadMessage(f"the error number {found.number}"))
        try:
            sent = {key: wire.raw(span, body) for key, span in found.cubins.items()}
            arch = profile_of(profile).arch
            return await anyio.to_thread.run_sync(binaries.collect, program, found.kernels, sent, directory, arch), spent
        except wire.BadMessage as error:
            raise nonsense("compile", error) from error


def nonsense(kind: str, error: wire.BadMessage) -> Ended:
    """The verdict on a candidate whose child sent something that cannot be."""
    return Ended(Status.CRASH, f"the process that was {_WHAT[kind]} sent {error}")
