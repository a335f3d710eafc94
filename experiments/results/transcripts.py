"""Chooses the transcripts that show how the arms of an experiment differ, each by a stated rule, and writes them as a page."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.results.run_pages import FOLDER, commit_of, name_of
from experiments.results.turns import shortened, turn_lines
from rlkernel.metrics import is_hack, is_lazy
from rlkernel.report.samples import steps
from rlkernel.report.summary import RunRecord
from rlkernel.runs.directory import TRANSCRIPTS
from rlkernel.runs.texts import jsonl
from rlkernel.types import Evaluation

KEPT = "transcripts.json"
"""What was chosen, beside the page that is made of it."""
REFINED = "sequential_scaling"
"""The experiment that trains nothing: it runs all of its arms, in directories of their own."""
LIMIT = 3
"""Transcripts of an experiment."""

Turns = Sequence[Mapping[str, Any]]
"""The turns of a trajectory, as a row of transcripts.jsonl has them."""


@dataclass(frozen=True)
class Mechanism:
    """Something that a turn can show."""

    title: str
    rule: str
    """Which turn is taken."""
    score: Callable[[Mapping[str, Any], Turns, int], float | None]
    """How well a turn shows it, given the dumped Run, the trajectory's turns and the turn's place; None where it does not."""
    split: str | None = None
    """The split whose turns can show it; None for both."""


def _turned_away(run: Mapping[str, Any], turns: Turns, k: int) -> float | None:
    bounds = [one["threshold"] for one in run.get("corrections", ()) if one["class"] == "PRS"]
    facts = _facts(turns[k])
    if not bounds or not is_lazy(facts) or facts.coverage is None or facts.coverage > min(bounds):
        return None
    return float(turns[k]["reward"])


def _paid_hack(run: Mapping[str, Any], turns: Turns, k: int) -> float | None:
    unchecked = run["reward"]["class"] == "UncheckedReward"
    return float(turns[k]["reward"]) if unchecked and is_hack(_facts(turns[k])) and turns[k]["reward"] > 0 else None


def _profile(run: Mapping[str, Any], turns: Turns, k: int) -> float | None:
    if k == 0 or not (turns[k - 1]["evaluation"]["correct"] and turns[k]["evaluation"]["correct"]):
        return None
    before, after = turns[k - 1]["evaluation"], turns[k]["evaluation"]
    costliest = next(iter(steps(before)), None)
    if costliest is None or costliest["live"] is not None or costliest["name"] in {op["op"] for op in after["ops"]}:
        return None
    return float(after["speedup"] / before["speedup"]) if before["speedup"] and after["speedup"] else None


def _mended(run: Mapping[str, Any], turns: Turns, k: int) -> float | None:
    broken = k > 0 and not turns[k - 1]["evaluation"]["correct"] and turns[k - 1]["code"] is not None
    return _speed(turns[k]) if broken and not is_hack(_facts(turns[k - 1])) else None


def _fastest(run: Mapping[str, Any], turns: Turns, k: int) -> float | None:
    return _speed(turns[k])


def _speed(turn: Mapping[str, Any]) -> float | None:
    facts = turn["evaluation"]
    return (facts["speedup_low"] or facts["speedup"]) if facts["correct"] else None


def _facts(turn: Mapping[str, Any]) -> Evaluation:
    return Evaluation.from_json(dict(turn["evaluation"]))


MECHANISMS = (
    # Nothing is turned away from a validation.
    Mechanism(
        "A lazy kernel that PRS turns away",
        "a turn of training with a coverage at or below PRS's threshold; the highest reward",
        _turned_away,
        split="train",
    ),
    Mechanism("A hack that pays only without the check", "no live kernel, and a reward above 0; the highest reward", _paid_hack),
    Mechanism(
        "A turn that reads the profile",
        "most of a correct answer's time went to a step of torch, which the next answer does in a kernel; the largest gain",
        _profile,
    ),
    Mechanism("A mistake that is mended", "a correct answer after one that was not; the highest speedup", _mended),
    Mechanism("The fastest answer", "the highest speedup, by the lower end of its interval", _fastest),
)
"""What is looked for, in this order."""


def choose(runs: Sequence[RunRecord]) -> list[dict[str, Any]]:
    """The transcripts of the first `LIMIT` mechanisms that the runs show, each from the turn with the highest score, no
    trajectory twice. Of equal turns the first is taken, by arm, seed and place in the file."""
    best: dict[str, tuple[float, dict[str, Any]]] = {}
    for mechanism, found in ((m, one) for run in runs for one in _trajectories(run) for m in MECHANISMS):
        for k in range(len(found["turns"]) if mechanism.split in (None, found["split"]) else 0):
            score = mechanism.score(found["run"], found["turns"], k)
            if score is not None and (mechanism.title not in best or score > best[mechanism.title][0]):
                best[mechanism.title] = (score, {**found, "why": mechanism.title, "rule": mechanism.rule, "turn": k + 1})
    chosen: list[dict[str, Any]] = []
    for mechanism in MECHANISMS:
        one = best.get(mechanism.title, (0.0, None))[1]
        if one is not None and len(chosen) < LIMIT and all(_place(one) != _place(other) for other in chosen):
            chosen.append(one)
    return [{key: value for key, value in _shortened(one).items() if key != "run"} for one in chosen]


def _trajectories(run: RunRecord) -> Iterator[dict[str, Any]]:
    path = run.directory / TRANSCRIPTS
    for line, row in enumerate(jsonl(path) if path.exists() else (), start=1):
        about = {"arm": run.arm, "seed": run.seed, "directory": run.directory.name, "line": line, "run": run.manifest["run"]}
        yield {**about, **{key: row[key] for key in ("split", "step", "problem", "turns")}}


def _place(one: Mapping[str, Any]) -> tuple[Any, ...]:
    return one["directory"], one["line"]


def _shortened(one: Mapping[str, Any]) -> dict[str, Any]:
    """The transcript with the turns that it is about: the one that was chosen, and the one before it."""
    first = max(0, one["turn"] - 2)
    turns = [shortened(first + n, turn) for n, turn in enumerate(one["turns"][first : one["turn"]], start=1)]
    return {**one, "turns": turns}


def write(chosen: Sequence[Mapping[str, Any]], directory: Path) -> None:
    """Write what was chosen, for `transcripts_page`."""
    (directory / KEPT).write_text(json.dumps(list(chosen), indent=1) + "\n", encoding="utf-8")


def read(directory: Path) -> list[dict[str, Any]]:
    """What was chosen; nothing in folders of an earlier version."""
    path = directory / KEPT
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    return found


def links(chosen: Sequence[Mapping[str, Any]]) -> list[str]:
    """The section of an experiment's page that leads to its transcripts."""
    if not chosen:
        return []
    rows = [f"- [{one['why']}](transcripts.md#{n}-{_anchor(one['why'])}): {where(one)}" for n, one in enumerate(chosen, start=1)]
    return ["", "## Transcripts", "", *rows]


def places(name: str, runs: Sequence[RunRecord], preset: str, pages: Collection[str] = ()) -> list[str]:
    """The section of an experiment's page that says where the turns of each run are, and how to make and read them. pages: the
    names of the runs that have a page of their own."""
    arm = "" if name == REFINED else f" {runs[0].arm}"
    sizes = f" --preset {preset}" if preset else ""
    lines = [
        "",
        "## Runs and their turns",
        "",
        f"A run keeps its turns in `{TRANSCRIPTS}` of its directory, below the experiment's `--out`: a line per trajectory, with "
        "prompt, answers, verdicts and rewards. "
        + ("A page per run has its validations and trajectories of the last one; all turns" if pages else "They")
        + " are too large to be checked in. The same code and policy make a directory of this name again, and a report in which "
        "all turns can be filtered and searched. Where a commit stands with changes, a later one has them: `manifests.json` has "
        "a checksum of each file that the run depends on.",
        "",
        "```sh",
        f"git checkout COMMIT && python -m experiments.{name}{arm} --seeds {runs[0].seed}{sizes}",
        f"open runs/{name}/report.html     # Turns",
        "```",
        "",
        "| arm | seed | turns | commit | finished |",
        "|---|---|---|---|---|",
    ]
    for run in runs:
        facts = run.manifest
        commit = commit_of(run)
        turns = f"`{_directory(name, run)}/{TRANSCRIPTS}`"
        if name != REFINED and name_of(run) in pages:
            turns = f"[{name_of(run)}](../{FOLDER}/{name_of(run)}.md)"
        lines.append(f"| `{run.arm}` | {run.seed} | {turns} | {commit or '-'} | {facts['finished'][:10]} |")
    return lines


def _directory(name: str, run: RunRecord) -> str:
    """The directory of a run, below `--out`; one of test-time scaling is named after more than its manifest tells."""
    return f"refined/{run.arm}-seed{run.seed}-*" if name == REFINED else f"arms/{name_of(run)}"


def _anchor(title: str) -> str:
    return "".join(c for c in title.lower().replace(" ", "-") if c.isalnum() or c == "-")


def where(one: Mapping[str, Any]) -> str:
    """The arm, seed, step and turn of a transcript."""
    place = f"{one['split']} at step {one['step']}" if one["split"] == "validation" else f"step {one['step']}"
    return f"`{one['arm']}`, seed {one['seed']}, {place}, turn {one['turn']}"


def transcripts_page(title: str, chosen: Sequence[Mapping[str, Any]]) -> str:
    """The page of an experiment's transcripts."""
    lines = [f"# {title}: transcripts", "", "Chosen by the rule under each title, from all turns that the runs kept as text.", ""]
    for n, one in enumerate(chosen, start=1):
        lines += [f"## {n} {one['why']}", "", f"Rule: {one['rule']}.", ""]
        lines += [f"{where(one)}; problem `{one['problem']}`; line {one['line']} of `{one['directory']}/{TRANSCRIPTS}`.", ""]
        for turn in one["turns"]:
            lines += turn_lines(turn)
    return "\n".join(lines).rstrip("\n") + "\n"
