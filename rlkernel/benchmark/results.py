"""Writes what a benchmark leaves: results.json, attempts.parquet, and tables for a terminal of 100 columns."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from rlkernel.benchmark import audit
from rlkernel.benchmark.attempts import Ledger, TurnRow, unfinished
from rlkernel.benchmark.scores import THRESHOLDS, Attempt, BaselineScores, Reading, Scores, Tried, after_turn, fast, score
from rlkernel.evaluator.native.agreement import summary_line
from rlkernel.types import Evaluation, Problem, Status

RESULTS, PARQUET, PROMPTS = "results.json", "attempts.parquet", "prompts.json"
WIDTH = 100
"""The width of the tables in columns."""
SHOWN_TURNS = 12
"""About this many turns are in the table of turns; results.json has all."""


def by_level(tried: Tried, levels: Mapping[str, int]) -> dict[str, Scores]:
    """The scores of every level, and of all problems where there are several levels. Empty where nothing was tried."""
    found = {}
    for level in sorted({levels[name] for name in tried}):
        found[f"level {level}"] = score({name: samples for name, samples in tried.items() if levels[name] == level})
    return {**found, "all": score(tried)} if len(found) > 1 else found


def traced_only(tried: Tried) -> dict[str, list[Attempt]]:
    """The same attempts without what rests on a native run, which counts as `untraceable` here."""

    def one(turn: Evaluation) -> Evaluation:
        return turn if turn.trust == "traced" else Evaluation(Status.UNTRACEABLE, turn.detail)

    return {name: [[one(turn) for turn in attempt] for attempt in samples] for name, samples in tried.items()}


def columns(tried: Tried, levels: Mapping[str, int]) -> dict[str, Scores]:
    """The scores by level on what was traced. Where some candidates were judged natively, another column counts them, too."""
    found = by_level(traced_only(tried), levels)
    native = any(turn.trust == "native" for samples in tried.values() for attempt in samples for turn in attempt)
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
    """Write results.json and attempts.parquet, each whole or not at all, and return the first. samples: the number of attempts
    wanted at each problem; turns: the most of an attempt."""
    levels = {problem.name: problem.level for problem in problems}
    tried = ledger.tried(samples, turns)
    rows = [row for row in ledger.rows if row.problem in levels and row.sample < samples[row.problem] and row.turn < turns]
    answers = [row.answer for row in rows if row.answer is not None]
    results = {
        "manifest": manifest,
        "complete": all(
            not unfinished(ledger.attempt(name, k), turns)
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
        "problem": text, "level": whole, "sample": whole, "turn": whole, "shown": pa.list_(whole),
        "status": text, "correct": pa.bool_(), "matches": pa.bool_(), **facts,
        "reward": number, "text": text, "code": text, "feedback": text, "stop": text,
        "prompt_tokens": whole, "completion_tokens": whole, "cost": number, "requests": whole, "seconds": number,
        "evaluation": text,
    }  # fmt: skip
    schema = pa.schema(list(columns.items()), metadata={"rlkernel": json.dumps(manifest)})
    table = []
    for row in sorted(rows, key=lambda row: (levels[row.problem], row.problem, row.sample, row.turn)):
        if row.answer is None or row.evaluation is None:
            continue  # an attempt without room for another turn
        found, answer = row.evaluation, row.answer
        table.append(
            {
                **{name: getattr(row, name) for name in ("problem", "sample", "reward", "code", "feedback", "seconds")},
                "level": levels[row.problem], "turn": row.turn + 1, "shown": [i + 1 for i in row.shown],
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


def show(results: Mapping[str, Any], console: Console) -> None:
    """Print the tables in 100 columns: Fast@p of the best turn, then the turns where there are several."""
    if not results["scores"]:
        console.print("nothing was scored")
    for table in tables(results):
        console.print(table.title)
        shown = Table(box=None, pad_edge=False)
        for i, name in enumerate(table.columns):
            shown.add_column(name, justify="left" if i == 0 and not name else "right", no_wrap=True)
        for row in table.rows:
            shown.add_row(*row)
        console.print(shown)
    for line in notes(results):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table whose cells are text."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tables(results: Mapping[str, Any]) -> list[TextTable]:
    """The tables of results: by level, against each baseline that was timed; then turn by turn."""
    columns, found = results["scores"], []
    for baseline, what in (("eager", "the eager reference"), ("compiled", "the reference under torch.compile")):
        if any(scores[baseline] for scores in columns.values()):
            rows = tuple(_score_rows(baseline, columns))
            found.append(TextTable(f"against {what}: mean [95 % over problems]", ("", *columns), rows))
    if len(results["turns"]) > 1:
        names = ("turn", "Fast@1 best", "Fast@1.2 best", "Fast@1 last", "Fast@1.2 last")
        found.append(TextTable("after each turn, speedup >= p", names, tuple(_turn_rows(results["turns"]))))
    return found


def _score_rows(baseline: str, columns: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    def row(label: str, value: Callable[..., str]) -> tuple[str, ...]:
        cells = [value(scores) if scores[baseline] else "-" for scores in columns.values()]
        # Over one problem there is no interval.
        alone = [scores["problems"] == 1 for scores in columns.values()]
        return (label, *(cell.split(" [")[0] if one else cell for cell, one in zip(cells, alone, strict=True)))

    for p in (f"{p:g}" for p in THRESHOLDS):
        for which, sign in (("at_least", ">="), ("more_than", "> ")):
            if p == "0" and which == "more_than":
                continue  # both mean correct
            label = "Fast@0 (correct)" if p == "0" else f"Fast@{p} ({sign} {p})"
            yield row(label, lambda s, p=p, which=which: _percent(s[baseline]["fast"]["best"][p][which]))
    yield row("geometric mean speedup", lambda s: _times(s[baseline]["geometric_mean"]["best"]))
    if baseline == "compiled":
        yield row("problems that it compiles", lambda s: str(s[baseline]["problems"]))
        return
    for k in sorted({int(k) for scores in columns.values() for k in scores["pass_at"]}):
        yield row(f"pass@{k}", lambda s, k=k: _percent(s["pass_at"].get(str(k))))
    for key in ("correct_rate", "hacking_rate", "lazy_rate"):
        yield row(f"{key.removesuffix('_rate')}, of turns", lambda s, key=key: _percent(s[key]))
    for key, within in (("kernelbench_loose_rate", "1e-2"), ("kernelbench_tight_rate", "1e-4")):
        yield row(f"close to {within}, as KernelBench counts", lambda s, key=key: _percent(s[key]))
    for key in ("problems", "samples"):
        yield row(key, lambda s, key=key: str(s[key]))


def _turn_rows(turns: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    step = -(-len(turns) // SHOWN_TURNS)
    for row in turns:
        if row["turn"] in (1, len(turns)) or row["turn"] % step == 0:
            yield (str(row["turn"]), *(_percent(row[reading][p]) for reading in ("best", "last") for p in ("1", "1.2")))


def notes(results: Mapping[str, Any]) -> list[str]:
    """The lines below the tables, which say what these do not."""
    manifest, lines = results["manifest"], []
    timing = " and ".join(results["timing"]) or "no"
    lines.append(f"{timing} times; {results['problems']} problems, {len(results['unscored'])} of them not scored")
    lines += [shorten(f"  not scored: {reason}") for reason in list(results["unscored"].values())[:5]]
    if len(results["unscored"]) > 5:
        lines.append(f"  and {len(results['unscored']) - 5} more: see {RESULTS}")
    sizes = manifest.get("sizes", {})
    for key, what in (("resized", "made smaller as a whole"), ("compared_at", "compared at reduced sizes")):
        if sizes.get(key):
            lines.append(f"{len(sizes[key])} problems were {what}: see {RESULTS}")
    tokens = results["tokens"]
    if tokens["completion"] or results["requests"]:
        cost = f", cost {results['cost']:.4f}" if results["cost"] else ""
        requests = f"{results['requests']} requests, " if results["requests"] else ""
        lines.append(f"{requests}{tokens['prompt']:,} + {tokens['completion']:,} tokens{cost}")
    if native := results["trust"].get("native"):
        lines.append(f"{native} correct turns could not be traced and were judged natively: only `trust: native` counts them")
    if results["audit"] is not None:
        lines.append(summary_line(results["audit"]))
        lines += [shorten(f"  {disagreement}") for disagreement in results["audit"]["disagreements"][:5]]
    if results["untried"]:
        lines.append(f"{len(results['untried'])} problems without an answer yet")
    if not results["complete"]:
        lines.append("INCOMPLETE: the numbers are those of the attempts that were answered; the same command goes on")
    return lines


def shorten(text: str) -> str:
    """Shorten a line to the tables' width; results.json has all of it."""
    return text if len(text) <= WIDTH else text[: WIDTH - 3] + "..."


def _percent(value: Mapping[str, float] | None) -> str:
    """A share with its interval as text.

    >>> _percent({"mean": 0.456, "low": 0.4, "high": 0.517})
    '46 % [40, 52]'
    """
    if value is None:
        return "-"
    mean, low, high = (f"{100 * value[key]:.0f}" for key in ("mean", "low", "high"))
    return f"{mean} % [{low}, {high}]"


def _times(value: Mapping[str, float] | None) -> str:
    return "-" if value is None else "{mean:.2f} [{low:.2f}, {high:.2f}]".format(**value)
