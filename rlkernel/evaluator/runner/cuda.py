"""The GPU runner: trusted Python, one per GPU, that replays Programs, judges their outputs at full shape and times them.

    study (once per problem) -> load -> tune -> rounds -> liveness -> trials -> attribution

Candidate first, answer later: while a candidate's kernels run, no expected output exists. Inputs and weights are drawn anew from
their seeds afterwards, compared with what the candidate was given, and only then does the reference compute the answer.
After an error that the context does not survive, the runner reports the verdict and ends; the pool starts another.
"""

from __future__ import annotations

import math
import secrets
import socket
import statistics
from collections import OrderedDict
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from rlkernel.evaluator import program as programs
from rlkernel.evaluator import wire
from rlkernel.evaluator.judge import ELEMENT_FACTOR, Match, Sizes, quick_sizes
from rlkernel.evaluator.program import MalformedProgram
from rlkernel.evaluator.replay import StepFailed
from rlkernel.evaluator.runner import driver
from rlkernel.evaluator.runner.gpu_problem import GpuProblem, Kind, Known, draw_seed, step_times, tensors_of
from rlkernel.evaluator.runner.stopwatch import Hung, Run, Stopwatch, settle, spin_for
from rlkernel.evaluator.runner.subject import NoConfig, Outcome, Subject, binary_of
from rlkernel.evaluator.timing import Speedup, enough, speedup
from rlkernel.reference import BrokenReference
from rlkernel.types import Status

PROBLEMS_KEPT = 256
KEEP_RESERVED = 24 << 30
"""Bytes of GPU memory that torch may hold on to between candidates."""
BATCH = 4
"""Trials enqueued before the host waits."""
MAX_VOID = 60
"""Trials that may be void because the host was too slow, before they count anyway."""
INPUTS_CHECKED = 4
"""In one of so many trials, chosen at random, the inputs are compared with what their seed gives."""
NOISE_FACTOR = 4.0
"""A skipped launch changes the output if it does so by this much more than repeating the call does."""


@dataclass
class Session:
    """One candidate's stay on the GPU."""

    problem: GpuProblem
    known: Known
    stopwatch: Stopwatch
    subject: Subject
    other: Subject | None
    modal: bool
    seconds: float
    kernels: list[driver.Kernel] = field(default_factory=list)
    worst: float = 0.0

    def round(self, subject: Subject, kind: Kind) -> tuple[Match, Outcome, tuple[int, int, int]]:
        """One round of fresh weights and inputs. Raises Strayed."""
        init_seed, seed, forward_seed = draw_seed(), draw_seed(), draw_seed()
        subject.construct(self.problem.init_tensors(), init_seed, self.problem.model(init_seed, other=kind.other))
        outcome = subject.forward(tensors_of(self.problem.inputs(seed, stress=kind.stress)), forward_seed)
        if subject.strayed(outcome):
            raise Strayed("a kernel writes outside its tensors")
        match = self.judge(kind, outcome.output, outcome.inputs, (init_seed, seed, forward_seed))
        return match, outcome, (init_seed, seed, forward_seed)

    def judge(self, kind: Kind, output: Any, inputs: list[torch.Tensor], seeds: tuple[int, int, int]) -> Match:
        """Compute the answer, which did not exist before, and compare."""
        init_seed, seed, forward_seed = seeds
        given = self.problem.inputs(seed, stress=kind.stress)
        expected = self.problem.call(self.problem.model(init_seed, other=kind.other), given, forward_seed)
        match = self.problem.compare(self.known, kind, output, inputs, expected, tensors_of(given))
        self.worst = max(self.worst, match.error)
        return match

    def live(self, subject: Subject, first: Outcome, seeds: tuple[int, int, int]) -> dict[int, bool]:
        """Which functions' launches change the output. Raises Strayed if the output depends on foreign or unwritten memory."""
        honest = tensors_of(copied(first.output))  # what forward allocates lies in the same memory in every call
        noise = difference(honest, tensors_of(self.rerun(subject, seeds, frozenset()).output))
        if noise > 2.0 * max(self.known.allowed["plain"], default=0.0):
            raise Strayed("the output depends on memory that is not written or not the candidate's own")
        found: dict[int, bool] = {}
        for function in sorted({launch.function for launch in subject.program.launches}):
            skipped = self.rerun(subject, seeds, frozenset({function}))
            found[function] = difference(honest, tensors_of(skipped.output)) > NOISE_FACTOR * noise
        return found

    def rerun(self, subject: Subject, seeds: tuple[int, int, int], skip: frozenset[int]) -> Outcome:
        init_seed, seed, forward_seed = seeds
        subject.construct(self.problem.init_tensors(), init_seed, self.problem.model(init_seed))
        return subject.forward(tensors_of(self.problem.inputs(seed)), forward_seed, skip=skip)

    def trials(self) -> tuple[Speedup, float, Match]:
        """Timed runs of both sides, interleaved, each on inputs of its own; every timed output is checked."""
        init_seed = draw_seed()
        model = self.problem.model(init_seed)
        self.subject.construct(self.problem.init_tensors(), init_seed, model)
        spin = self._spin(model)
        candidate_us: list[float] = []
        reference_us: list[float] = []
        host_us: list[float] = []
        match, void = Match(True), 0
        while match.matches and not enough(reference_us, candidate_us):
            batch = [self._trial(model, spin) for _ in range(BATCH)]
            settle(BATCH * (self.seconds + 1.0))
            match = self._check(batch)
            for trial in batch:
                if (trial.candidate.void or trial.reference.void) and void < MAX_VOID:
                    void += 1
                    spin = min(1.5 * spin, 20_000.0)
                    continue
                candidate_us.append(trial.candidate.us)
                reference_us.append(trial.reference.us)
                host_us.append(trial.candidate.host_us)
        if match.matches and not self._weights_intact(model, init_seed):
            raise Strayed("a kernel writes to memory that is not the candidate's own")
        timed = speedup(reference_us or [1.0], candidate_us or [1.0])
        return timed, statistics.median(host_us or [0.0]), match

    def _spin(self, model: torch.nn.Module) -> float:
        """How long the queue must be held for the slower side to enqueue its call, microseconds."""
        inputs = self.problem.inputs(draw_seed())
        flat = tensors_of(inputs)
        _, mine = self.stopwatch.run(lambda: self.subject.timed(flat, 0), 50.0)
        _, theirs = self.stopwatch.run(lambda: self.problem.call(model, inputs, 0), 50.0)
        settle(self.seconds + 10.0)
        return spin_for(max(mine.host_us, theirs.host_us))

    def _trial(self, model: torch.nn.Module, spin: float) -> Trial:
        """Enqueue one timed run of each side, and the check of what they gave. Does not wait where outputs are finite."""
        seed, forward_seed = draw_seed(), draw_seed()
        inputs = self.problem.inputs(seed)
        flat = tensors_of(inputs)
        given = inputs
        if self.known.changes_inputs:
            given = rebuilt(inputs, [t.clone(memory_format=torch.preserve_format) for t in flat])
        self.subject.refill()
        output, candidate = self.stopwatch.run(lambda: self.subject.timed(flat, forward_seed), spin)
        expected, reference = self.stopwatch.run(lambda: self.problem.call(model, given, forward_seed), spin)
        if not self.known.finite:
            match = self.problem.compare(self.known, Kind(), output, [], expected, [])
            return Trial(candidate, reference, match, [], [])
        checks = [quick_sizes(f, e) for f, e in zip(tensors_of(output), tensors_of(expected), strict=True) if e.numel()]
        changed = []
        if not self.known.changes_inputs and secrets.randbelow(INPUTS_CHECKED) == 0:
            again = tensors_of(self.problem.inputs(seed))
            changed = [(a.view(torch.uint8) != b.view(torch.uint8)).any() for a, b in zip(flat, again, strict=True) if a.numel()]
        return Trial(candidate, reference, Match(True), checks, changed)

    def _check(self, batch: list[Trial]) -> Match:
        """Of the batch's outputs, the first miss."""
        sizes = [row for trial in batch for row in trial.sizes]
        if any(torch.stack(flags).any().item() for trial in batch if (flags := trial.changed)):
            return Match(False, "forward changes an input when it is timed, the reference does not")
        allowed = self.known.allowed["plain"] * len(batch)
        for numbers, limit in zip(torch.stack(sizes).tolist() if sizes else [], allowed, strict=False):
            found = Sizes(*numbers)
            self.worst = max(self.worst, found.error)
            if not found.fine(limit):
                error = max(found.error, found.largest / max(found.rms, 1e-30) / ELEMENT_FACTOR)
                return Match(False, f"an output of a timed run is wrong: relative error {error:.2e}", error)
        return next((trial.match for trial in batch if not trial.match.matches), Match(True))

    def _weights_intact(self, model: torch.nn.Module, init_seed: int) -> bool:
        """The reference's weights outlived the candidate's kernels: parameters still are what their seed gives."""
        again = dict(self.problem.model(init_seed).named_parameters())
        return all(torch.equal(p, again[n]) for n, p in model.named_parameters() if n in again)

    def rows(self) -> list[dict[str, Any]]:
        inputs = tensors_of(self.problem.inputs(draw_seed()))
        self.subject.replay.place = None
        with torch.no_grad():
            return step_times(self.subject.replay, inputs, self.stopwatch, self.subject.fresh, self.subject.refill)


@dataclass(frozen=True, slots=True)
class Trial:
    """One timed run of each side. Its checks are on the device, except `match`."""

    candidate: Run
    reference: Run
    match: Match
    sizes: list[torch.Tensor]
    changed: list[torch.Tensor]


class Strayed(Exception):
    """The candidate reads or writes memory that is not its own."""


def copied(value: Any) -> Any:
    """An output with its tensors copied, strides kept; those that share elements stay as they are."""
    if isinstance(value, torch.Tensor):
        return value if wire.overlapping(value) else value.clone(memory_format=torch.preserve_format)
    if isinstance(value, (list, tuple)):
        return [copied(item) for item in value]
    return {k: copied(v) for k, v in value.items()} if isinstance(value, dict) else value


def rebuilt(structure: Any, tensors: list[torch.Tensor]) -> Any:
    """`structure` with its tensors replaced, in order."""
    rest = iter(tensors)

    def build(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return next(rest)
        return [build(item) for item in value] if isinstance(value, (list, tuple)) else value

    return build(structure)


def difference(first: list[torch.Tensor], second: list[torch.Tensor]) -> float:
    """||a - b|| / ||a||, the largest over the outputs: 0 if they are equal, at least a tiny number if not."""
    total = 0.0
    for a, b in zip(first, second, strict=True):
        if not a.numel():
            continue
        sizes = Sizes(*quick_sizes(b, a).tolist()) if not a.is_complex() else Sizes(0.0 if torch.equal(a, b) else 1.0, 1.0, 1.0)
        if not math.isfinite(sizes.miss) or not math.isfinite(sizes.rms):
            same = torch.equal(a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8))
            return 0.0 if same else math.inf
        if sizes.largest > 0:
            total = max(total, sizes.error, 1e-30)
    return total


class Runner:
    """Serves one GPU."""

    def __init__(self) -> None:
        torch.cuda.init()
        torch.zeros(1, device="cuda")
        self.stopwatch = Stopwatch()
        self._problems: OrderedDict[str, GpuProblem] = OrderedDict()
        settle(60.0)

    def hello(self, header: dict[str, Any]) -> dict[str, Any]:
        """Warm the libraries up, so that the first candidate does not pay for them."""
        fraction = min(0.95, float(header["memory_bytes"]) / torch.cuda.get_device_properties(0).total_memory)
        torch.cuda.set_per_process_memory_fraction(fraction)
        square = torch.ones(64, 64, device="cuda")
        (square @ square).sum().item()
        return {"name": torch.cuda.get_device_name(0), "processors": torch.cuda.get_device_properties(0).multi_processor_count}

    def evaluate(self, header: dict[str, Any], body: bytes) -> dict[str, Any]:
        """Never raises for what a candidate does."""
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = bool(header["tf32"])
        try:
            problem, known = self._known(header)
        except BrokenReference as error:
            return {"broken": str(error)}
        except (RuntimeError, ValueError, TypeError, Hung) as error:
            return {"broken": f"{header['name']}: on the GPU: {type(error).__name__}: {str(error).splitlines()[0][:200]}",
                    "lost": driver.lost_context() is not None}  # fmt: skip
        try:
            return {**self._examine(header, body, problem, known), "known": asdict(known)}
        except Strayed as error:
            return {"status": str(Status.OUT_OF_BOUNDS), "detail": str(error), "lost": True, "known": asdict(known)}
        except Hung:
            detail = f"forward takes more than {header['seconds']:g} s on the GPU"
            return {"status": str(Status.TIMEOUT), "detail": detail, "lost": True, "known": asdict(known)}
        except MalformedProgram as error:
            return {"status": str(Status.CRASH), "detail": f"the trace is not a Program: {error}", "known": asdict(known)}
        except NoConfig:
            detail = "no configuration of a kernel can be launched on this GPU"
            return {"status": str(Status.RUNTIME_ERROR), "detail": detail, "known": asdict(known)}
        except (StepFailed, driver.DriverError, RuntimeError) as error:  # what the GPU reports of the candidate's work
            return {**failure(error), "known": asdict(known)}
        finally:
            if torch.cuda.memory_reserved() > KEEP_RESERVED:
                torch.cuda.empty_cache()

    def _known(self, header: dict[str, Any]) -> tuple[GpuProblem, Known]:
        key = header["name"] + header["source"]
        if key not in self._problems:
            self._problems[key] = GpuProblem(header["source"], header["name"])
            if len(self._problems) > PROBLEMS_KEPT:
                self._problems.popitem(last=False)
        problem = self._problems[key]
        if header["known"] is not None:
            return problem, Known.from_json(header["known"])
        reference = programs.from_json(header["reference"])
        return problem, problem.study(reference, self.stopwatch, modal=header["modal"], tf32=bool(header["tf32"]))

    def _examine(self, header: dict[str, Any], body: bytes, problem: GpuProblem, known: Known) -> dict[str, Any]:
        binaries = {
            facts["key"]: binary_of(facts) for table in header["kernels"].values() for c in table.values() for facts in c.values()
        }
        loaded: dict[str, driver.Kernel] = {}
        for key, binary in binaries.items():
            loaded[key] = driver.Kernel(binary, wire.raw(header["binaries"][key], body))
        try:
            seconds = float(header["seconds"])
            main = programs.from_json(header["program"])
            subject = Subject(main, header["kernels"]["program"], loaded, seconds)
            other: Subject | None = None
            if header["other"] is not None:
                other = Subject(programs.from_json(header["other"]), header["kernels"]["other"], loaded, seconds)
            session = Session(problem, known, self.stopwatch, subject, other, bool(header["modal"]), seconds)
            return self._session(session)
        finally:
            for kernel in loaded.values():
                if driver.lost_context() is None:
                    kernel.unload()

    def _session(self, session: Session) -> dict[str, Any]:
        subject, seed = session.subject, draw_seed()
        warm = session.problem.model(seed)
        subject.construct(session.problem.init_tensors(), seed, warm)
        subject.tune(tensors_of(session.problem.inputs(seed)), seed)
        facts: dict[str, Any] = {"choices": {str(k): v for k, v in subject.choices.items()}, "other_mode": False}
        plain, outcome, seeds = session.round(subject, Kind())
        live = session.live(subject, outcome, seeds) if plain.matches else {}
        del outcome
        match = plain
        if match.matches and "stress" in session.known.allowed:
            match, _, _ = session.round(subject, Kind(stress=True))
            if not match.matches:
                match = Match(False, match.detail + " (inputs scaled by 8)", match.error)
        if match.matches and (session.modal or session.other is not None):
            mine = session.other or subject
            if session.other is not None:
                session.other.construct(session.problem.init_tensors(), seed, warm)
                session.other.tune(tensors_of(session.problem.inputs(seed)), seed)
            match, _, _ = session.round(mine, Kind(other=True))
            facts["other_mode"] = not match.matches
        if match.matches:
            timed, host_us, match = session.trials()
            facts |= {"speedup": asdict(timed), "host_us": host_us, "rows": session.rows()}
        return {
            **facts, "matches": match.matches, "detail": match.detail, "error": session.worst,
            "live": {str(k): v for k, v in live.items()},
        }  # fmt: skip


def failure(error: Exception) -> dict[str, Any]:
    """A verdict from the driver's error number, not from text."""
    code = driver.lost_context()
    if code is not None:
        status, detail = driver.STATUS_OF_ERROR.get(code, (Status.CRASH, f"the GPU reports error {code}"))
        return {"status": str(status), "detail": detail, "lost": True}
    if isinstance(error, torch.cuda.OutOfMemoryError) or "out of memory" in str(error):
        return {"status": str(Status.RUNTIME_ERROR), "detail": "forward needs more GPU memory than a candidate may have"}
    return {"status": str(Status.RUNTIME_ERROR), "detail": str(error).splitlines()[0][:300]}


def serve(sock: socket.socket) -> None:
    """Answer until the pool closes the socket, or until the context is lost."""
    runner: Runner | None = None
    while (message := wire.receive(sock)) is not None:
        header, body = message
        if header["do"] == "hello":
            runner = Runner()
            wire.send(sock, wire.pack(runner.hello(header)))
            continue
        assert runner is not None
        reply = runner.evaluate(header, body)
        wire.send(sock, wire.pack(reply))
        if reply.get("lost"):
            return
