"""Writes what a benchmark leaves: results.json and turns.parquet."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rlkernel.benchmark import audit
from rlkernel.benchmark.scores import THRESHOLDS, BaselineScores, Reading, Scores, Tried, Verdicts, after_turn, fast, score
from rlkernel.benchmark.trajectories import Ledger, TurnRow, unfinished
from rlkernel.types import Evaluation, Problem, Status

RESULTS, PARQUET, PROMPTS = "results.json", "turns.parquet", "prompts.json"


def by_level(tried: Tried, levels: Mapping[str, int]) -> dict[str, Scores]:
    """The scores of every level, and of all problems where there are several levels. Empty where nothing was tried."""
    found = {}
    for level in sorted({levels[name] for name in tried}):
        found[f"level {level}"] = score({name: samples for name, samples in tried.items() if levels[name] == level})
    return {**found, "all": score(tried)} if len(found) > 1 else found


def traced_only(tried: Tried) -> dict[str, list[Verdicts]]:
    """The same trajectories without what rests on a native run, which counts as `untraceable` here."""

    def one(turn: Evaluation) -> Evaluation:
        return turn if turn.trust == "traced" else Evaluation(Status.UNTRACEABLE, turn.detail)

    return {name: [[one(turn) for turn in trajectory] for trajectory in samples] for name, samples in tried.items()}


def columns(tried: Tried, levels: Mapping[str, int]) -> dict[str, Scores]:
    """The scores by level on what was traced. Where some candidates were judged natively, another column counts them, too."""
    found = by_level(traced_only(tried), levels)
    native = any(turn.trust == "native" for samples in tried.values() for trajectory in samples for turn in trajectory)
    return {**found, "trust: native": score(tried)} if native else found


def by_turn(tried: Tried, turns: int) -> list[dict[str, Any]]:
    """Fast@p after each turn, best of history and last, e.g. {"turn": 1, "best": {"1": {...}}, "last": {...}}."""
    rows: list[dict[str, Any]] = []
    readings: tuple[Reading, ...] = ("best", "last")
    for turn in range(1, turns + 1):
        sofar = after_turn(tried, turn)
        rows.append({"turn": turn, **{r: {f"{p:g}": asdict(fast(sofar, p, r)) for p in THRESHOLDS} for r in readings}})
    return rows


def to_json(scores: Scores) -> dict[str, Any]:
    """Scores as JSON values, with thresholds as text."""

    def against(value: BaselineScores) -> dict[str, Any]:
        fast = {r: {f"{p:g}": asdict(f) for p, f in by_p.items()} for r, by_p in value.fast.items()}
        means = {r: None if mean is None else asdict(mean) for r, mean in value.geometric_mean.items()}
        return {"problems": value.problems, "fast": fast, "geometric_mean": means}

    return {
        **asdict(scores),
        "eager": against(scores.eager),
        "compiled": None if scores.compiled is None else against(scores.compiled),
        "pass_at": {str(k): asdict(interval) for k, interval in scores.pass_at.items()},
    }


def write(
    directory: Path, manifest: Mapping[str, Any], problems: Sequence[Problem], samples: Mapping[str, int], turns: int,
    ledger: Ledger,
) -> dict[str, Any]:  # fmt: skip
    """Write results.json and turns.parquet, each whole or not at all, and return the first. samples: the number of trajectories
    wanted at each problem; turns: the most of a trajectory."""
    levels = {problem.name: problem.level for problem in problems}
    tried = ledger.tried(samples, turns)
    rows = [row for row in ledger.rows if row.problem in levels and row.sample < samples[row.problem] and row.turn < turns]
    answers = [row.answer for row in rows if row.answer is not None]
    results = {
        "manifest": manifest,
        "complete": all(
            not unfinished(ledger.trajectory(name, k), turns)
            for name in levels
            if name not in ledger.unscored
            for k in range(samples[name])
        ),
        "problems": len(levels),
        "unscored": ledger.unscored,
        "untried": sorted(set(levels) - set(tried) - set(ledger.unscored)),
        "timing": sorted({row.evaluation.timing for row in rows if row.evaluation is not None and row.evaluation.timing}),
        "tokens": {
            "prompt": sum(answer.prompt_tokens or 0 for answer in answers),
            "completion": sum(answer.completion_tokens or 0 for answer in answers),
            "answers_without_a_count": sum(answer.completion_tokens is None for answer in answers),
        },
        "cost": ledger.cost,
        "requests": sum(answer.requests for answer in answers),
        "scores": {name: to_json(scores) for name, scores in columns(tried, levels).items()},
        "turns": by_turn(traced_only(tried), turns) if tried else [],
        "trust": dict(sorted(Counter(row.evaluation.trust for row in rows if row.evaluation and row.evaluation.correct).items())),
        "audit": audit.results(directory, ledger),
    }
    draft = directory / f"{RESULTS}.draft"
    draft.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    draft.replace(directory / RESULTS)
    write_parquet(directory / PARQUET, rows, levels, manifest)
    return results


def write_parquet(path: Path, rows: Sequence[TurnRow], levels: Mapping[str, int], manifest: Mapping[str, Any]) -> None:
    """Write one row per turn, sorted, with the manifest as JSON in the schema's metadata under `rlkernel`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    text, number, whole = pa.string(), pa.float64(), pa.int64()
    facts = dict.fromkeys(("speedup", "speedup_low", "speedup_high", "reference_us", "candidate_us", "compiled_us"), number)
    facts |= {"coverage": number, "max_error": number, "kernelbench_close": text, "timing": text, "detail": text, "trials": whole}
    facts |= {"trust": text}
    columns = {
        "problem": text, "level": whole, "trajectory": whole, "turn": whole, "shown": pa.list_(whole),
        "status": text, "correct": pa.bool_(), "matches": pa.bool_(), **facts,
        "reward": number, "text": text, "code": text, "feedback": text, "stop": text,
        "prompt_tokens": whole, "completion_tokens": whole, "cost": number, "requests": whole, "seconds": number,
        "evaluation": text,
    }  # fmt: skip
    schema = pa.schema(list(columns.items()), metadata={"rlkernel": json.dumps(manifest)})
    table = []
    for row in sorted(rows, key=lambda row: (levels[row.problem], row.problem, row.sample, row.turn)):
        if row.answer is None or row.evaluation is None:
            continue  # a trajectory without room for another turn
        found, answer = row.evaluation, row.answer
        table.append(
            {
                **{name: getattr(row, name) for name in ("problem", "reward", "code", "feedback", "seconds")},
                "level": levels[row.problem], "trajectory": row.sample + 1, "turn": row.turn + 1,
                "shown": [i + 1 for i in row.shown],
                "status": str(found.status), "correct": found.correct, "matches": found.matches,
                **{name: getattr(found, name) for name in facts},
                **{name: getattr(answer, name) for name in ("text", "stop", "cost", "requests")},
                "prompt_tokens": answer.prompt_tokens, "completion_tokens": answer.completion_tokens,
                "evaluation": json.dumps(found.to_json()),
            }
        )  # fmt: skip
    draft = path.with_name(path.name + ".draft")
    pq.write_table(pa.Table.from_pylist(table, schema=schema), draft)
    draft.replace(path)
