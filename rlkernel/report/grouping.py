"""Groups runs that may stand for one arm: those that differ in nothing but their seeds."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rlkernel.report.summary import RunRecord, common_timing

Alike = dict[int, list[RunRecord]]
"""Seed -> the runs of it: one, or its twins, which were made twice."""


def about(run: RunRecord) -> str:
    """What a run is apart from its seed, as text: its arm, its fields, its code, and the policy that it began from."""
    fields = {key: value for key, value in run.manifest.get("run", {}).items() if key != "seed"}
    return json.dumps([run.arm, fields, run.manifest.get("code"), run.manifest.get("policy")], sort_keys=True)


def alike(runs: Sequence[RunRecord]) -> list[Alike]:
    """Group runs by what they are about, in the order of first appearance. Raises UsageError for modelled beside measured
    times."""
    common_timing(runs)
    groups: dict[str, Alike] = {}
    for run in runs:
        groups.setdefault(about(run), {}).setdefault(run.seed, []).append(run)
    return list(groups.values())


def labels(firsts: Sequence[RunRecord]) -> list[str]:
    """What groups are called, given a run of each: by their arm, or by that run's directory where several have the arm."""
    arms = [run.arm for run in firsts]
    return [run.arm if arms.count(run.arm) == 1 else str(run.directory) for run in firsts]
