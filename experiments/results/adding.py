"""Adds runs to those that a folder of results keeps as numbers: GPU time comes in pieces, and directories of runs may be gone.

    runs of a later piece --+--> the experiment with all of its runs --> numbers.json, pages
    numbers.json -----------'

Arms of equal seed are compared with each other where they began from one policy (`rlkernel.report.summary.paired`). A later piece
whose claims compare its arms with those that are kept therefore goes on with their policy. Its arms are those of then, at the
sizes of then.

A claim that is younger than the runs that are kept was written after a look at them, and says so. One that was dropped stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from experiments import checked_in
from experiments.checked_in import Kept
from experiments.results.collecting import OF_AN_ARM, SCALE, order_of, scale_of
from experiments.results.numbers import COLUMNS, TRAIN_KEYS, manifest
from experiments.results.pages import Found, bands_of
from experiments.results.transcripts import REFINED
from rlkernel.errors import UsageError
from rlkernel.report.claims import Claim
from rlkernel.report.summary import RunRecord, common_timing

WORDS = ("text", "paper", "after_look", "certain")
"""The fields of a claim by which no run is judged."""


def added(one: Found, directory: Path) -> Found | None:
    """The experiment with the runs that its folder keeps and with its new ones; as it is where the folder keeps none, and None
    where it keeps all of them already.

    Raises UsageError where the two cannot be compared."""
    if not checked_in.is_checked_in(directory):
        return one
    kept = checked_in.read(directory)
    there = {(run.arm, run.seed): run for run in kept.runs}
    new = [run for run in one.runs if not _same(run, there.get((run.arm, run.seed)))]
    if not new:
        return None
    _check(one, new, kept, directory)
    order = order_of(one.name)
    runs = sorted([*kept.runs, *new], key=lambda run: (order.index(run.arm), run.seed))
    story = replace(one.story, claims=_claims(one.story.claims, kept.claims))
    return replace(one, story=story, runs=tuple(runs), bands=_sums(kept.bands, bands_of(new)))


def _claims(today: Sequence[Claim], then: Sequence[Claim] | None) -> tuple[Claim, ...]:
    """The claims of an experiment, of which some may be younger than the runs that are kept, and those of then that it has no
    more."""
    if then is None:
        return tuple(today)
    old, now = ([_substance(claim) for claim in claims] for claims in (then, today))
    ours = [claim if _substance(claim) in old else replace(claim, after_look=True) for claim in today]
    return (*ours, *(claim for claim in then if _substance(claim) not in now))


def _substance(claim: Claim) -> tuple[Any, ...]:
    """What a claim is judged by."""
    return tuple(getattr(claim, field.name) for field in fields(claim) if field.name not in WORDS)


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
    if gone := sorted({run.arm for run in kept.runs} - set(order_of(one.name))):
        raise UsageError(f"--add: {directory} keeps runs of {gone[0]}, no arm of {one.name} today: move it with --archive first")
    if lost := sorted({key for run in kept.runs for key in _keys(run)} - {*COLUMNS, *TRAIN_KEYS, "step"}):
        raise UsageError(f"--add: {directory} keeps {lost[0]}, which would be lost: move it with --archive first")
    short = [replace(run, manifest=manifest(run)) for run in new]
    for run in short:
        for other in kept.runs:
            if told := _other_scale(one, run, other):
                name = f"{run.arm} of seed {run.seed}"
                raise UsageError(f"--add: {name} ran {told} than {directory} keeps: move that with --archive first")
            if other.seed == run.seed and (other.arm == run.arm or _untold(run, other)):
                what = "is there already" if other.arm == run.arm else "may have begun from another policy, which neither names"
                told = f"--add: {other.arm} of seed {other.seed} in {directory} {what}"
                raise UsageError(f"{told}: give {run.arm} of seed {run.seed} another seed")


def _untold(run: RunRecord, other: RunRecord) -> bool:
    """Whether two runs would be taken for such of one policy though neither names its own and they were not on one card."""
    policies, cards = (
        [one.manifest.get("policy") for one in (run, other)],
        [one.manifest["machine"].get("cards") for one in (run, other)],
    )
    return not any(policies) and any(cards) and cards[0] != cards[1]


def _keys(run: RunRecord) -> set[str]:
    """The names of all numbers of a run but for the seconds, which pages do not have."""
    rows = [*run.validation, *run.training, *(row for problems in run.outcomes.values() for row in problems.values())]
    return {key for row in rows for key in row} - {"seconds_wall"}


def _other_scale(one: Found, run: RunRecord, other: RunRecord) -> str:
    """In what a new run differs from one that is kept, though all runs of an experiment share it; empty where in nothing."""
    mine, its = run.manifest["run"], other.manifest["run"]
    if mine["problems"]["sha256"] != its["problems"]["sha256"]:
        return "on other problems"
    # A preset may have other sizes for one arm than for another; of no preset, the sizes themselves are the scale.
    keys = [key for key in SCALE if one.name != REFINED] if one.preset else []
    if any(mine.get(key) != its.get(key) for key in keys):
        return "at another scale"
    if (one.name == REFINED or not one.preset) and scale_of(one.name)(run) != scale_of(one.name)(other):
        return "at another scale"
    if run.arm == other.arm:
        pairs = [(mine.get(key), its.get(key)) for key in OF_AN_ARM if key in its]
        if any(a != b for a, b in pairs) or run.manifest.get("context") != other.manifest.get("context"):
            return f"as another {run.arm}"
    return ""


def _sums(one: Mapping[str, Sequence[int]], other: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
    """Counts of both, by arm.

    >>> _sums({"grpo": [1, 2]}, {"grpo": [3, 0], "trloo": [0, 1]})
    {'grpo': [4, 2], 'trloo': [0, 1]}
    """
    arms = [*one, *(arm for arm in other if arm not in one)]
    return {arm: [sum(pair) for pair in zip(*(of[arm] for of in (one, other) if arm in of), strict=True)] for arm in arms}
