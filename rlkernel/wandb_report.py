"""The tables and the figure of an experiment as a Weights & Biases run of its own, beside those of its arms."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlkernel.claims import Judged
from rlkernel.kernels import Kernel
from rlkernel.summary import METRICS, ArmSummary


def log_report(
    directory: Path, name: str, arms: Sequence[ArmSummary], judged: Sequence[Judged], kernels: Sequence[Kernel], figure: Path
) -> None:
    """Offline unless WANDB_API_KEY is set; WANDB_MODE, if set, decides instead. Does nothing where wandb is not installed."""
    if importlib.util.find_spec("wandb") is None:
        return
    import wandb

    mode: Any = os.environ.get("WANDB_MODE", "online" if os.environ.get("WANDB_API_KEY") else "offline")
    remote = wandb.init(
        project=os.environ.get("WANDB_PROJECT", "rlkernel"),
        dir=directory,
        name=f"{name}-report",
        group="report",
        mode=mode,
        settings=wandb.Settings(silent=True, console="off", disable_git=True, x_disable_stats=True),
    )
    try:
        tables = {"arms": arm_rows(arms), "claims": claim_rows(judged), "kernels": kernel_rows(kernels)}
        logged = {
            key: wandb.Table(columns=list(rows[0]), data=[list(row.values()) for row in rows])
            for key, rows in tables.items()
            if rows
        }
        remote.log({**logged, "figure": wandb.Image(str(figure))})
    finally:
        remote.finish()


def arm_rows(arms: Sequence[ArmSummary]) -> list[dict[str, Any]]:
    """One row per arm: first and last values, their means over seeds."""
    return [
        {
            "arm": arm.arm,
            "seeds": len(arm.seeds),
            "steps": arm.steps,
            **{
                f"{m.label}, {when}": values[m.key].mean
                for m in METRICS
                for when, values in (("first", arm.first), ("last", arm.last))
            },
        }
        for arm in arms
    ]


def claim_rows(judged: Sequence[Judged]) -> list[dict[str, Any]]:
    """One row per claim; numbers that do not exist are None."""
    rows = []
    for found in judged:
        difference = found.difference
        interval = None if difference is None else difference.interval
        rows.append(
            {
                "claim": found.claim.text,
                "verdict": str(found.verdict),
                "better": found.claim.better,
                "worse": found.claim.worse,
                "metric": found.claim.metric,
                "difference": None if difference is None else difference.mean,
                "low": None if interval is None else interval.low,
                "high": None if interval is None else interval.high,
                "adjusted p": found.adjusted_p,
                "paper": found.claim.paper,
            }
        )
    return rows


def kernel_rows(kernels: Sequence[Kernel]) -> list[dict[str, Any]]:
    """One row per kernel."""
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
