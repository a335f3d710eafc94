"""The page of statistics beside a prepared table: what was kept, what was not and why, times and operators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from experiments.preparation.filters import Verdict
from rlkernel.sources.load import LeftOut

EDGES = (0, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000, float("inf"))
"""Microseconds between which references are counted."""
MOST = 30
"""Rows of a table of operators, and examples of a cause."""


def page(title: str, verdicts: Sequence[Verdict], left_out: Sequence[LeftOut], timing: str) -> str:
    """The page as Markdown. timing: what the times are, in words."""
    kept = [verdict for verdict in verdicts if not verdict.cause]
    lines = [f"# {title}", "", f"{len(verdicts) + len(left_out):,} rows, {len(kept):,} problems kept. Times are {timing}.", ""]
    causes = Counter(verdict.cause for verdict in verdicts if verdict.cause)
    counts = [("not a reference", len(left_out)), *causes.most_common()]
    lines += _table(("left out", "rows"), [(cause, f"{count:,}") for cause, count in counts if count])
    lines += _table(("reference's time", "problems"), list(_times([v.looked.survey.reference_us for v in kept])))
    levels = Counter(verdict.looked.problem.level for verdict in kept)
    lines += _table(("level", "problems"), [(str(level or "none"), f"{count:,}") for level, count in sorted(levels.items())])
    lines += _table(("of the problems that are kept", "problems"), list(_facts(kept)))
    operators = Counter(op for verdict in kept for op in {fact.op for fact in verdict.looked.survey.ops})
    lines += _table(("operator", "problems"), [(op, f"{count:,}") for op, count in operators.most_common(MOST)])
    for cause in causes:
        own = [verdict for verdict in verdicts if verdict.cause == cause]
        lines += [f"## {cause}", ""]
        lines += [f"- {verdict.looked.problem.name}: {_cell(verdict.detail)}" for verdict in own[:MOST]]
        lines += [f"- and {len(own) - MOST:,} more", ""] if len(own) > MOST else [""]
    if left_out:
        lines += ["## not a reference", "", *(f"- row {row.number}: {_cell(row.cause)}" for row in left_out[:MOST]), ""]
    return "\n".join(lines).rstrip() + "\n"


def _facts(kept: Sequence[Verdict]) -> Iterator[tuple[str, str]]:
    surveys = [verdict.looked.survey for verdict in kept]
    yield "forms of work, apart from names, constants and sizes", f"{len({survey.form for survey in surveys}):,}"
    yield "whose values were not looked at, since they are large for a CPU", f"{sum(not s.checked for s in surveys):,}"
    yield "that draw numbers", f"{sum(s.random for s in surveys):,}"
    yield "with an operator that the model of time does not know", f"{sum(bool(s.unpriced) for s in surveys):,}"


def _times(times: Sequence[float]) -> Iterator[tuple[str, str]]:
    for low, high in pairwise(EDGES):
        count = sum(low <= us < high for us in times)
        if count:
            yield (f"{low:g} to {high:g} us" if high < float("inf") else f"{low:g} us and more"), f"{count:,}"


def _table(head: tuple[str, str], rows: Sequence[tuple[str, str]]) -> list[str]:
    if not rows:
        return []
    return [f"| {head[0]} | {head[1]} |", "|---|---|", *(f"| {one} | {other} |" for one, other in rows), ""]


def _cell(text: str) -> str:
    """Text of a stranger on one line, without what Markdown would read."""
    return " ".join(text.replace("`", "'").replace("<", "(").replace(">", ")").split())[:200]
