"""What a benchmark's results say, as tables and lines for a terminal of 100 columns and for the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from rlkernel.benchmark.results import RESULTS
from rlkernel.benchmark.scores import THRESHOLDS
from rlkernel.evaluator.native.agreement import summary_line

WIDTH = 100
"""The width of the tables in columns."""
SHOWN_TURNS = 12
"""About this many turns are in the table of turns; results.json has all."""
MORE = "every threshold, pass@k and rate: the same command with --long, or the report"


def show(label: str, results: Mapping[str, Any], console: Console, *, everything: bool = False) -> None:
    """Print what counts in 100 columns, or everything: every threshold and rate, and every baseline."""
    console.print(headline(label, results), markup=False, highlight=False, soft_wrap=True, style="bold")
    for table in (*tables(results), *(long_tables(results) if everything else ())):
        console.print(table.title)
        shown = Table(box=None, pad_edge=False)
        for i, name in enumerate(table.columns):
            shown.add_column(name, justify="left" if i == 0 and not name else "right", no_wrap=True)
        for row in table.rows:
            shown.add_row(*row)
        console.print(shown)
    for line in notes(results):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    if results["scores"] and not everything:
        console.print(MORE, markup=False, highlight=False)


def headline(label: str, results: Mapping[str, Any]) -> str:
    """What was found, in one line. label: who was scored."""
    if not results["scores"]:
        return f"{label}: nothing was scored"
    scores = results["scores"].get("all") or next(iter(results["scores"].values()))
    fast, problems = scores["eager"]["fast"]["best"], scores["problems"]
    shares = ", ".join(f"{what} {_percent(fast[p]['at_least'])}" for what, p in (("correct", "0"), ("Fast@1.2", "1.2")))
    return f"{label}: {shares}; {problems} problem{'s' * (problems != 1)}, {' and '.join(results['timing']) or 'no'} time"


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table whose cells are text."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tables(results: Mapping[str, Any]) -> list[TextTable]:
    """What a reader looks for first, by level; then turn by turn, where there are several turns."""
    columns, found = results["scores"], []
    if columns:
        found.append(TextTable("best turn, mean [95 % over problems]", ("", *columns), tuple(_brief_rows(columns))))
    if len(results["turns"]) > 1:
        names = ("turn", "Fast@1 best", "Fast@1.2 best", "Fast@1 last", "Fast@1.2 last")
        found.append(TextTable("after each turn, speedup >= p", names, tuple(_turn_rows(results["turns"]))))
    return found


def long_tables(results: Mapping[str, Any]) -> list[TextTable]:
    """Every threshold and rate by level, against each baseline that was timed."""
    columns, found = results["scores"], []
    for baseline, what in (("eager", "the eager reference"), ("compiled", "the reference under torch.compile")):
        if any(scores[baseline] for scores in columns.values()):
            rows = tuple(_score_rows(baseline, columns))
            found.append(TextTable(f"against {what}: mean [95 % over problems]", ("", *columns), rows))
    return found


def _row(label: str, columns: Mapping[str, Any], value: Callable[..., str]) -> tuple[str, ...]:
    """A row of a table by level. Over one problem there is no interval."""
    cells = ((value(scores), scores["problems"] == 1) for scores in columns.values())
    return (label, *(cell.split(" [")[0] if one else cell for cell, one in cells))


def _brief_rows(columns: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Correct, Fast@p and speedup, what was cheated, and how many problems, trajectories and turns that is of."""

    def fast(scores: Mapping[str, Any], baseline: str, p: str) -> str:
        return _percent(scores[baseline]["fast"]["best"][p]["at_least"]) if scores[baseline] else "-"

    for label, p in (("correct", "0"), ("Fast@1", "1"), ("Fast@1.2", "1.2")):
        yield _row(label, columns, lambda s, p=p: fast(s, "eager", p))
    if any(scores["compiled"] for scores in columns.values()):
        yield _row("Fast@1 over torch.compile", columns, lambda s: fast(s, "compiled", "1"))
    yield _row("geometric mean speedup", columns, lambda s: _times(s["eager"]["geometric_mean"]["best"]))
    yield _row("hacking, of turns", columns, lambda s: _percent(s["hacking_rate"]))
    for key, label in (("problems", "problems"), ("samples", "trajectories"), ("turns", "turns")):
        yield _row(label, columns, lambda s, key=key: str(s[key]))


def _score_rows(baseline: str, columns: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    def row(label: str, value: Callable[..., str]) -> tuple[str, ...]:
        return _row(label, columns, lambda scores: value(scores) if scores[baseline] else "-")

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


def _turn_rows(turns: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    step = -(-len(turns) // SHOWN_TURNS)
    for row in turns:
        if row["turn"] in (1, len(turns)) or row["turn"] % step == 0:
            yield (str(row["turn"]), *(_percent(row[reading][p]) for reading in ("best", "last") for p in ("1", "1.2")))


def notes(results: Mapping[str, Any]) -> list[str]:
    """The lines below the tables, which say what these do not."""
    manifest, lines = results["manifest"], []
    timing = " and ".join(results["timing"]) or "no"
    counts = {"not scored": len(results["unscored"]), "without an answer yet": len(results["untried"])}
    rest = "".join(f", {count} {what}" for what, count in counts.items() if count)
    scored = results["problems"] - sum(counts.values())
    lines.append(f"{timing} times; {scored} of {results['problems']} problem{'s' * (results['problems'] != 1)} scored{rest}")
    lines += [shorten(f"  not scored: {reason}") for reason in list(results["unscored"].values())[:5]]
    if len(results["unscored"]) > 5:
        lines.append(f"  and {len(results['unscored']) - 5} more: see {RESULTS}")
    sizes = manifest.get("sizes", {})
    for key, what in (("resized", "made smaller as a whole"), ("compared_at", "compared at reduced sizes")):
        if sizes.get(key):
            were = "1 problem was" if len(sizes[key]) == 1 else f"{len(sizes[key])} problems were"
            lines.append(f"{were} {what}: see {RESULTS}")
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
    if not results["complete"]:
        lines.append("INCOMPLETE: the numbers are those of the trajectories that were answered; the same command goes on")
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
