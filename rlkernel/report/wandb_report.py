"""Logs the tables and the figure of an experiment as a Weights & Biases run of its own, beside the runs of its arms."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlkernel.errors import UsageError
from rlkernel.report.best_kernels import BestKernel, best_kernels, best_run
from rlkernel.report.claims import DecidedClaim
from rlkernel.report.compare import Pair, of_other_policies, pair_arms
from rlkernel.report.summary import ArmSummary, RunRecord, Window, columns_of
from rlkernel.runs.wandb_mode import mode, open_run
from rlkernel.statistics import Interval

LISTED = "fast_1.2"
"""The metric in which problems are compared one by one, as `rlkernel compare` does by default."""


def log_report(
    directory: Path,
    name: str,
    arms: Sequence[ArmSummary],
    decided: Sequence[DecidedClaim],
    runs: Sequence[RunRecord],
    figure: Path,
) -> None:
    """Log the report in the mode of `rlkernel.runs.wandb_mode.mode`. Does nothing where wandb is not installed."""
    if importlib.util.find_spec("wandb") is None or mode() == "disabled":
        return
    import wandb

    pairs = compared(runs)
    remote = open_run(
        directory, name=f"{name}-report", group="report", job_type="report", tags=[name, *known_timing(runs)],
        config=report_config(name, runs),
    )  # fmt: skip
    try:
        tables = {
            "runs": run_rows(runs, None if remote.offline else remote.url),
            "arms": arm_rows(arms),
            "claims": claim_rows(decided),
            "comparison": comparison_rows(pairs),
            "problems": problem_rows(pairs),
            "kernels": kernel_rows(best_kernels(best_run(runs))),
        }
        logged = {
            key: wandb.Table(columns=list(rows[0]), data=[list(row.values()) for row in rows])
            for key, rows in tables.items()
            if rows
        }
        remote.log({**logged, "figure": wandb.Image(str(figure))})
    finally:
        remote.finish()


def report_config(name: str, runs: Sequence[RunRecord]) -> dict[str, Any]:
    """What the report is of: the experiment, its arms, seeds and timing, and the fingerprints and commits of its runs."""
    git = [run.manifest.get("git") or {} for run in runs]
    return {
        "experiment": name,
        "arms": list(dict.fromkeys(run.arm for run in runs)),
        "seeds": sorted({run.seed for run in runs}),
        "timing": ", ".join(known_timing(runs)) or None,
        "runs": [run.manifest.get("wandb_id") for run in runs],
        "fingerprints": [run.manifest.get("fingerprint") for run in runs],
        "commits": sorted({found["commit"] for found in git if "commit" in found}),
    }


def known_timing(runs: Sequence[RunRecord]) -> list[str]:
    """How the runs' candidates were timed, each way once."""
    return sorted({run.timing for run in runs if run.timing is not None})


def run_rows(runs: Sequence[RunRecord], own_url: str | None) -> list[dict[str, Any]]:
    """Make one row per run, with its address at Weights & Biases. own_url: the report's, None offline, where no run has one.

    >>> from pathlib import Path
    >>> run_rows([RunRecord(Path("a"), "grpo", 0, None, {"wandb_id": "x1"}, ())], "https://wandb.ai/me/rlkernel/runs/r")[0]["link"]
    'https://wandb.ai/me/rlkernel/runs/x1'
    """
    place = None if own_url is None else own_url.rpartition("/")[0]
    return [
        {
            "arm": run.arm,
            "seed": run.seed,
            "id": run.manifest.get("wandb_id"),
            "link": None if place is None or "wandb_id" not in run.manifest else f"{place}/{run.manifest['wandb_id']}",
            "directory": run.directory.name,
        }
        for run in runs
    ]


def arm_rows(arms: Sequence[ArmSummary]) -> list[dict[str, Any]]:
    """Make one row per arm, with the means over seeds of its first and last values, in the columns that compare."""
    return [
        {
            "arm": arm.arm,
            "seeds": len(arm.seeds),
            "steps": arm.steps,
            **{
                f"{m.label}, {when}": values[m.key].mean
                for m in columns_of(arms)
                for when, values in (("first", arm.first), ("last", arm.last))
            },
        }
        for arm in arms
    ]


def claim_rows(decided: Sequence[DecidedClaim]) -> list[dict[str, Any]]:
    """Make one row per claim; numbers that do not exist are None."""
    rows = []
    for found in decided:
        difference = found.difference
        interval = None if difference is None else difference.interval
        rows.append(
            {
                "claim": found.claim.told,
                "verdict": str(found.verdict),
                "better": found.claim.better,
                "worse": found.claim.worse,
                "metric": found.claim.metric,
                "difference": None if difference is None else difference.mean,
                "low": None if interval is None else interval.low,
                "high": None if interval is None else interval.high,
                "detectable": found.detectable,
                "seeds for the margin": found.seeds_text or None,
                "adjusted p": found.adjusted_p,
                "paper": found.claim.paper,
            }
        )
    return rows


def compared(runs: Sequence[RunRecord]) -> list[Pair]:
    """Compare the last measurements of every arm with those of the first; none where arms cannot be paired, which is no error
    here, and without those that began from another policy."""
    try:
        found = pair_arms(runs, LISTED, Window(last=1))
    except UsageError:
        return []
    return [pair for pair in found if pair.seeds or not of_other_policies(pair.base, pair.other)]


def comparison_rows(pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """Make one row per arm and metric, as `rlkernel compare` shows them."""
    return [
        {
            **_sides(pair),
            "metric": row.metric.key,
            "base value": row.base,
            "other value": row.other,
            "difference": row.difference.mean,
            **_bounds("", row.difference.bootstrap),
            **_bounds(" over seeds", row.difference.interval),
            "p over problems": row.difference.p,
            "problems above": row.higher,
            "equal": row.equal,
            "below": row.lower,
        }
        for pair in pairs
        for row in pair.metrics
    ]


def problem_rows(pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """Make one row per arm and problem, in the metric `LISTED`."""
    return [
        {
            **_sides(pair),
            "problem": row.problem,
            "metric": LISTED,
            "base value": row.base,
            "other value": row.other,
            "difference": row.difference,
            **_bounds(" over seeds", row.interval),
        }
        for pair in pairs
        for row in pair.problems
    ]


def _sides(pair: Pair) -> dict[str, str]:
    return {"base": pair.base.label, "other": pair.other.label, "seeds": ", ".join(map(str, pair.seeds))}


def _bounds(over: str, interval: Interval | None) -> dict[str, float | None]:
    low, high = (None, None) if interval is None else (interval.low, interval.high)
    return {f"low{over}": low, f"high{over}": high}


def kernel_rows(kernels: Sequence[BestKernel]) -> list[dict[str, Any]]:
    """Make one row per kernel, with its code."""
    return [
        {
            "problem": kernel.problem,
            "speedup": kernel.speedup,
            "low": kernel.low,
            "high": kernel.high,
            "timing": kernel.timing,
            "coverage": kernel.coverage,
            "bottleneck": kernel.bottleneck,
            "code": kernel.code,
        }
        for kernel in kernels
    ]
