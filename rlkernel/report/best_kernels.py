"""Finds the best kernels that a run wrote, in its transcripts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlkernel.report.summary import RunRecord, Window, value
from rlkernel.runs.texts import jsonl
from rlkernel.types import Status

LIMIT = 10
"""The most kernels that are listed."""


@dataclass(frozen=True, slots=True)
class BestKernel:
    """A correct candidate, and what the evaluator measured."""

    problem: str
    split: str
    step: int
    code: str
    speedup: float
    low: float
    high: float
    timing: str
    coverage: float
    bottleneck: str
    """The reference's costliest operator and its share of the reference's time; empty where it is not known."""

    def speedup_text(self) -> str:
        """The speedup as text, e.g. `2.41x [2.39, 2.43] (measured)`; modelled time has no interval."""
        interval = f" [{self.low:.2f}, {self.high:.2f}]" if self.timing == "measured" else ""
        return f"{self.speedup:.2f}x{interval} ({self.timing})"


def best_run(runs: Sequence[RunRecord]) -> RunRecord | None:
    """The run with the highest Fast@1.2 over the second half of its measurements; None where there is no run."""
    return max(runs, key=lambda run: value(run, "fast_1.2", Window(share=0.5)) or 0.0, default=None)


def best_kernels(run: RunRecord | None, limit: int = LIMIT) -> tuple[BestKernel, ...]:
    """The run's best kernel of each problem, by the lower bound of the speedup; none where there is no run. Transcripts hold the
    best trajectory of every step and a sample of the others, so that a fast kernel of a mixed step may be missing."""
    if run is None:
        return ()
    best: dict[str, BestKernel] = {}
    for row in jsonl(run.directory / "transcripts.jsonl"):
        for turn in row["turns"]:
            facts = turn["evaluation"]
            if facts["status"] != Status.CORRECT or facts["speedup"] is None or turn["code"] is None:
                continue
            bottleneck = "; ".join(f"{op['op']} ({100 * op['share']:.0f} %)" for op in facts["reference_ops"][:1])
            low, high = facts["speedup_low"] or facts["speedup"], facts["speedup_high"] or facts["speedup"]
            found = BestKernel(
                row["problem"],
                row["split"],
                row["step"],
                turn["code"],
                facts["speedup"],
                low,
                high,
                facts["timing"] or "unknown",
                facts["coverage"] or 0.0,
                bottleneck,
            )
            known = best.get(found.problem)
            if known is None or (found.low, found.coverage) > (known.low, known.coverage):
                best[found.problem] = found
    return tuple(sorted(best.values(), key=lambda kernel: -kernel.low)[:limit])
