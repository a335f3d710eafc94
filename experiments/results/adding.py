"""Adds runs to those that a folder of results keeps as numbers: GPU time comes in pieces, and directories of runs may be gone.

    runs of a later piece --+--> the experiment with all of its runs --> numbers.json, pages
    numbers.json -----------'

Arms of equal seed are compared with each other, so they began from one policy on one card. A later piece therefore has seeds
of its own, or goes on with the same policy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from experiments import checked_in
from experiments.checked_in import Kept
from experiments.results.numbers import manifest
from experiments.results.pages import Found, bands_of
from rlkernel.errors import UsageError
from rlkernel.report.summary import RunRecord, common_timing


def added(one: Found, directory: Path, order: Sequence[str]) -> Found:
    """The experiment with the runs that its folder keeps and with its new ones; as it is where the folder keeps none. A run that
    is kept already is not added again. order: the names of its arms.

    Raises UsageError where the two cannot be compared."""
    if not checked_in.is_checked_in(directory):
        return one
    kept = checked_in.read(directory)
    there = {(run.arm, run.seed): run for run in kept.runs}
    new = [run for run in one.runs if not _same(run, there.get((run.arm, run.seed)))]
    _check(one, new, kept, directory)
    runs = sorted([*kept.runs, *new], key=lambda run: (order.index(run.arm), run.seed))
    return replace(one, runs=tuple(runs), bands=_sums(kept.bands, bands_of(new)))


def _same(run: RunRecord, other: RunRecord | None) -> bool:
    """Whether two records are of one run."""
    return other is not None and all(run.manifest[key] == other.manifest[key] for key in ("fingerprint", "finished"))


def _check(one: Found, new: Sequence[RunRecord], kept: Kept, directory: Path) -> None:
    """Raise UsageError where new runs cannot stand beside those that are kept."""
    if one.preset != kept.preset or common_timing(one.runs) != common_timing(kept.runs):
        told = f"{kept.preset or 'no preset'}, {common_timing(kept.runs)} time"
        raise UsageError(
            f"--add: {directory} keeps runs of {told}, and the new ones are of {one.preset or 'no preset'}, "
            f"{common_timing(one.runs)} time: move it with --archive first"
        )
    problems = {run.manifest["run"]["problems"]["sha256"] for run in kept.runs}
    for run in new:
        name = f"{run.arm} of seed {run.seed}"
        if manifest(run)["run"]["problems"]["sha256"] not in problems:
            raise UsageError(f"--add: {name} ran on other problems than {directory} keeps: move that with --archive first")
        for other in kept.runs:
            if other.seed == run.seed and (other.arm == run.arm or _apart(run.manifest, other.manifest)):
                what = "is there already" if other.arm == run.arm else "ran from another policy or on another card"
                raise UsageError(
                    f"--add: {other.arm} of seed {other.seed} in {directory} {what}, and arms of equal seed share both: "
                    f"give {name} another seed"
                )


def _apart(one: Mapping[str, object], other: Mapping[str, object]) -> bool:
    """Whether two runs began from different policies, or, where that is not recorded, were on different cards."""
    policies = {run["policy"] for run in (one, other) if run.get("policy")}
    if all(run.get("policy") for run in (one, other)):
        return len(policies) > 1
    cards = [run["machine"].get("cards") for run in (one, other)]  # type: ignore[attr-defined]
    return all(cards) and cards[0][0] != cards[1][0]


def _sums(one: Mapping[str, Sequence[int]], other: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
    """Counts of both, by arm.

    >>> _sums({"grpo": [1, 2]}, {"grpo": [3, 0], "trloo": [0, 1]})
    {'grpo': [4, 2], 'trloo': [0, 1]}
    """
    arms = [*one, *(arm for arm in other if arm not in one)]
    return {arm: [sum(pair) for pair in zip(*(of[arm] for of in (one, other) if arm in of), strict=True)] for arm in arms}
