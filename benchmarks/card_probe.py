"""Measures, inside of a card's process, where its time goes. `card_profile` starts the zygote of a card through this module.

    python -P -m benchmarks.card_probe SOCKET     (its job stands in the environment, see `Job`)

The functions of `PHASES` are wrapped in that process alone, so that nothing of the product knows of it. A phase inside of another
one is told apart from the same phase elsewhere. Nothing waits for the card that would not wait anyway: a phase's time is the
host's.
"""

from __future__ import annotations

import cProfile
import functools
import gc
import importlib
import io
import json
import os
import pstats
import socket
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

VARIABLE = "CARD_PROBE"
"""The variable of the environment that holds a `Job`."""
GPU, JUDGING = "rlkernel.evaluator.gpu", "rlkernel.evaluator.judging"
PHASES: dict[str, tuple[str, ...]] = {
    f"{GPU}.runner": ("Runner.study", "Runner.evaluate", "Runner._problem", "Runner._examine", "_loaded", "whole_stay"),
    f"{GPU}.rounds": ("Rounds.prepare", "Rounds.round", "Rounds.call"),
    f"{GPU}.session": ("Session._live", "Session._judged", "Session.rows"),
    f"{GPU}.showing": ("shown_of",),
    f"{GPU}.on_host": ("always_same", "whole_plants"),
    f"{GPU}.trials": ("Trials.run", "Trials._trial", "Trials._told", "Trials._still_intact", "Trials._recordable"),
    f"{GPU}.subject": (
        "Subject.__init__", "Subject.construct", "Subject.lay_out", "Subject.tune", "Subject.forward", "Subject.timed",
        "Subject.release",
    ),
    f"{GPU}.places": ("Places.refill",),
    f"{GPU}.checks": ("Checks.zones", "Checks.outputs", "Checks.own", "Checks.inputs", "Checks.unchanged", "Checks.finish"),
    f"{GPU}.problem": (
        "GpuProblem.__init__", "GpuProblem.inputs", "GpuProblem.model", "GpuProblem.init_tensors", "GpuProblem.study",
        "GpuProblem.places", "GpuProblem._known_changes", "GpuProblem._known_constants", "GpuProblem._usual_call",
        "GpuProblem._rows", "step_times",
    ),
    f"{GPU}.measuring": (
        "Measuring.see", "Measuring.timed_limits", "Measuring.hardest", "Measuring.out_of_range", "copied_state", "changed_state",
    ),
    f"{GPU}.exact": ("measured", "exact_outputs"),
    f"{GPU}.driver": ("Kernel.__init__", "Kernel.launch", "Kernel.unload", "reset_persisting_l2"),
    f"{GPU}.stopwatch": ("wait", "Stopwatch.run"),
    f"{GPU}.fused": ("Fused.sums", "Fused.flush", "kept"),
    f"{GPU}.guards": ("Guards.__init__", "Guards.empty", "Guards.broken", "randomise", "fill"),
    f"{JUDGING}.references.reference_calls": ("call", "constants", "perturb", "is_constant"),
    f"{JUDGING}.errors.own_error": ("own_error", "huge_from"),
    f"{JUDGING}.errors.noise": ("confirmed", "moved_call"),
    f"{JUDGING}.errors.tensor_cores": ("cores_of", "balance_of", "halved"),
    f"{JUDGING}.inputs.stress": ("stresses", "changes", "changed"),
    f"{JUDGING}.inputs.places": ("places",),
    f"{JUDGING}.rounds": ("fates",),
    f"{JUDGING}.inputs.planting": ("only_values",),
    f"{JUDGING}.errors.comparison": ("wrong_slices", "quick_sums"),
    f"{JUDGING}.errors.kernelbench": ("closeness",),
    "rlkernel.evaluator.wire": ("receive", "send"),
    "rlkernel.evaluator.messages.codec": ("pack", "unpack"),
    "rlkernel.reference": ("Reference.inputs", "Reference.model", "load_reference"),
    "gc": ("collect",),
}  # fmt: skip
"""What is timed: the functions and methods of each module."""
IDLE = "receive"
"""The phase in which the process has nothing to do."""


HANDED_ON = 0.02
"""Seconds up to which a wait is taken for the way of a question from one candidate to the next."""


@dataclass(frozen=True, slots=True)
class Job:
    """What the probe is to do."""

    out: str
    """The file that receives the text, when the process ends."""
    skip: int
    """How many candidates are judged before the time counts."""
    functions: int
    """How many functions cProfile lists; 0: it does not run."""

    def to_text(self) -> str:
        return json.dumps(asdict(self))


@dataclass(slots=True)
class Node:
    """One phase inside of the phases around it."""

    name: str
    calls: int = 0
    seconds: float = 0.0
    inner: dict[str, Node] = field(default_factory=dict)

    @property
    def own_seconds(self) -> float:
        """The seconds in no phase inside."""
        return self.seconds - sum(one.seconds for one in self.inner.values())

    def clear(self) -> None:
        """Forget what was counted, here and inside."""
        self.calls, self.seconds = 0, 0.0
        for one in self.inner.values():
            one.clear()


class Phases:
    """A tree of phases with their times."""

    def __init__(self) -> None:
        self.root = Node("")
        self._now = self.root
        self.idle: list[float] = []
        """The seconds of each wait for a question."""

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, whose time counts under `name` from now on."""

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            outer = self._now
            node = outer.inner.get(name)
            if node is None:
                node = outer.inner[name] = Node(name)
            self._now, begun = node, time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                seconds = time.perf_counter() - begun
                node.seconds += seconds
                node.calls += 1
                if name == IDLE:
                    self.idle.append(seconds)
                self._now = outer

        return run

    def install(self, phases: dict[str, tuple[str, ...]]) -> None:
        """Wrap the functions of `phases`, wherever a module of ours has imported them."""
        for module, names in phases.items():
            home = importlib.import_module(module)
            for name in names:
                owner, _, method = name.rpartition(".")
                place = getattr(home, owner) if owner else home
                function = getattr(place, method)
                label = f"{owner} made" if method == "__init__" else method.removeprefix("_")
                wrapped = self.timed(label, function)
                setattr(place, method, wrapped)
                if not owner:
                    _replace(function, wrapped)

    def tree(self) -> str:
        """The whole tree: calls, seconds, milliseconds of a call, and seconds in no phase inside."""
        lines = [f"{'calls':>8} {'s':>8} {'ms each':>9} {'own s':>8}  phase"]

        def add(node: Node, depth: int) -> None:
            for one in sorted(node.inner.values(), key=lambda one: -one.seconds):
                if one.seconds >= 0.002:
                    each = 1000 * one.seconds / max(1, one.calls)
                    lines.append(f"{one.calls:8} {one.seconds:8.3f} {each:9.4f} {one.own_seconds:8.3f}  {'  ' * depth}{one.name}")
                    add(one, depth + 1)

        add(self.root, 0)
        return "\n".join(lines)

    def flat(self) -> str:
        """Each phase with all its places together, by the seconds in no phase inside."""
        sums: dict[str, list[float]] = {}

        def add(node: Node) -> None:
            for one in node.inner.values():
                found = sums.setdefault(one.name, [0, 0.0, 0.0])
                found[0] += one.calls
                found[1] += one.seconds
                found[2] += one.own_seconds
                add(one)

        add(self.root)
        rows = sorted(sums.items(), key=lambda row: -row[1][2])
        lines = [f"{'calls':>8} {'s':>8} {'own s':>8} {'own ms each':>12}  phase"]
        lines += [f"{n:8.0f} {s:8.3f} {own:8.3f} {1000 * own / max(1, n):12.4f}  {name}" for name, (n, s, own) in rows]
        return "\n".join(lines)


def _replace(function: Any, wrapped: Any) -> None:
    """Put a wrapped function in the place of the one that modules of ours have imported by name."""
    for name, module in list(sys.modules.items()):
        if name.startswith("rlkernel.") and module is not None:
            for known, value in list(vars(module).items()):
                if value is function:
                    setattr(module, known, wrapped)


class Probe:
    """One card's process while it is looked at."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.phases = Phases()
        self.profile = cProfile.Profile() if job.functions else None
        self._judged = 0
        self._begun = time.perf_counter()

    def serve(self, serve: Callable[[socket.socket], None], sock: socket.socket) -> None:
        """Serve as a runner does, and write what was found when it has ended."""
        self.phases.install(PHASES)
        runner = importlib.import_module(f"{GPU}.runner")
        runner.Runner.evaluate = self._counted(runner.Runner.evaluate)
        try:
            serve(sock)
        finally:
            if self.profile is not None:
                self.profile.disable()
            Path(f"{self.job.out}.{os.getpid()}").write_text(self.text(), encoding="utf-8")

    def _counted(self, evaluate: Callable[..., Any]) -> Callable[..., Any]:
        """The judgement of a candidate, after `Job.skip` of which all counts begin anew."""

        def run(*args: Any) -> Any:
            answer = evaluate(*args)
            self._judged += 1
            if self._judged == self.job.skip:
                self.phases.root.clear()
                self.phases.idle.clear()
                self._begun = time.perf_counter()
                if self.profile is not None:
                    self.profile.enable()
            return answer

        return run

    def text(self) -> str:
        """What was found, for people."""
        wall = time.perf_counter() - self._begun
        idle, brief = sum(self.phases.idle), [one for one in self.phases.idle if one <= HANDED_ON]
        short, median = sum(brief), statistics.median(brief or [0.0])
        parts = [
            f"{self._judged - self.job.skip} candidates in {wall:.2f} s, of which {idle:.2f} s without a question",
            f"{short:.2f} s of these in waits of at most {1000 * HANDED_ON:g} ms, of which the median is {1000 * median:.2f} ms",
            f"\nPhases inside of phases\n{self.phases.tree()}",
            f"\nPhases together\n{self.phases.flat()}",
        ]
        if self.profile is not None:
            for order in ("tottime", "cumulative"):
                into = io.StringIO()
                pstats.Stats(self.profile, stream=into).strip_dirs().sort_stats(order).print_stats(self.job.functions)
                parts.append(f"\ncProfile by {order}\n{into.getvalue()}")
            into = io.StringIO()
            pstats.Stats(self.profile, stream=into).strip_dirs().sort_stats("tottime").print_callers(self.job.functions // 2)
            parts.append(f"\nCallers\n{into.getvalue()}")
        return "\n".join(parts) + "\n"


def main() -> None:
    """Be a zygote, as `rlkernel.evaluator.processes.start` is one, whose runners are looked at."""
    gc.disable()
    zygote = importlib.import_module("rlkernel.evaluator.processes.zygote")
    jobs = importlib.import_module("rlkernel.evaluator.processes.jobs")
    probe = Probe(Job(**json.loads(os.environ[VARIABLE])))

    def runner(sock: socket.socket, fork: Any) -> None:
        del fork
        probe.serve(lambda sock: importlib.import_module(jobs.RUNNER).serve(sock), sock)

    jobs.JOBS["runner"] = runner
    zygote.main()


if __name__ == "__main__":
    main()
