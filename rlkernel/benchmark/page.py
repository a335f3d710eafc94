"""Writes report.html of a benchmark: its tables, and every trajectory in the viewer (see `rlkernel.report.page`)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlkernel.benchmark.scores import Verdicts, counted_turn, reaches
from rlkernel.benchmark.tables import headline, long_tables, notes, tables
from rlkernel.benchmark.trajectories import Ledger, TurnRow
from rlkernel.report import page, viewer
from rlkernel.report.viewer import Source, ViewerContent
from rlkernel.types import Status

PAGE = "report.html"
TEMPLATE = Path(__file__).with_name("benchmark.html.j2")
SHOWN = (1.0, 1.2)
"""The thresholds p of Fast@p in the viewer's table of problems."""


def write(
    directory: Path, label: str, results: Mapping[str, Any], ledger: Ledger, samples: Mapping[str, int], turns: int,
    prompts: Mapping[str, str],
) -> Path:  # fmt: skip
    """Write the page, and return its path. label: what was scored; results: what `rlkernel.benchmark.results.write` returned; the
    others: see `viewer_content`."""
    packed = viewer.pack(viewer_content(directory.name, label, results["timing"], ledger, samples, turns, prompts))
    text = page.render(
        TEMPLATE,
        packed,
        title=f"Benchmark of {label}",
        headline=headline(label, results),
        results=results,
        tables=tables(results),
        long_tables=long_tables(results),
        statuses=[str(s) for s in Status if any(s in scores["statuses"] for scores in results["scores"].values())],
        notes=notes(results),
        manifest=_short(results["manifest"]),
    )
    draft = directory / f"{PAGE}.draft"
    draft.write_text(text, encoding="utf-8")
    return draft.replace(directory / PAGE)


def viewer_content(
    name: str, label: str, timing: list[str], ledger: Ledger, samples: Mapping[str, int], turns: int, prompts: Mapping[str, str]
) -> ViewerContent:
    """All trajectories, as the viewer shows them. samples: the number of trajectories wanted at each problem; turns: the most
    of a trajectory; prompts: the prompt of each problem."""
    trajectories = []
    for problem, count in samples.items():
        for sample in range(count):
            rows = [row for row in ledger.trajectory(problem, sample)[:turns] if row.evaluation is not None]
            if rows:
                about = {"problem": problem, "split": "", "step": sample + 1, "prompt": prompts[problem]}
                trajectories.append({**about, "turns": [_turn(row) for row in rows]})
    tried = ledger.tried(samples, turns)
    measured = {problem: [_share(found, p) for p in SHOWN] for problem, found in tried.items()}
    return ViewerContent([Source(name, label, 0, " and ".join(timing) or None, trajectories)], {label: measured}, benchmark=True)


def _share(samples: Sequence[Verdicts], p: float) -> float:
    """Fast@p of one problem."""
    return sum(reaches(counted_turn(sample, "best", "eager"), p, "eager", strict=False) for sample in samples) / len(samples)


def _turn(row: TurnRow) -> dict[str, Any]:
    """A turn as a transcript has it, with what only a benchmark knows."""
    answer, evaluation = row.answer, row.evaluation
    assert answer is not None and evaluation is not None
    more: dict[str, Any] = {"saw": [turn + 1 for turn in row.shown]} if row.turn else {}
    more |= {key: value for key, value in (("tokens", answer.completion_tokens), ("cost", answer.cost)) if value}
    more |= {"trust": evaluation.trust} if evaluation.trust != "traced" else {}
    return {
        "completion": answer.text,
        "stop": answer.stop,
        "code": row.code,
        "evaluation": evaluation.to_json(),
        "reward": row.reward,
        "feedback": row.feedback,
        "more": more,
    }


def _short(manifest: Mapping[str, Any]) -> str:
    """A manifest as JSON, with the number of problems instead of their names."""
    benchmark = {**manifest["benchmark"], "problems": f"{len(manifest['benchmark']['problems'])} problems"}
    return json.dumps({**manifest, "benchmark": benchmark}, indent=1)
