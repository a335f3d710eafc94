"""What became of the mutants: kinds by verdicts, the accepted ones that differ, and those that do the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from rich.console import Console
from rich.text import Text

from benchmarks.drive import table
from benchmarks.mutants.controls import Told

Class = Literal["refused", "same", "differs", "untold", "failed"]
CLASSES: Mapping[Class, str] = {
    "refused": "not correct: most of what is not must be refused",
    "same": "accepted, and no control tells it from its original",
    "differs": "accepted, and refused by a control at which its original is correct",
    "untold": "accepted, and its original is correct at no control",
    "failed": "the evaluator itself failed",
}
SHOWN = 60
"""The number of accepted mutants that do the same which are printed; the result file has all."""


def classed(correct: bool | None, controls: Iterable[Told]) -> Class:
    """The class of a mutant, of its verdict (None where the evaluator failed) and what its controls say.

    >>> classed(False, []), classed(True, [Told("again", True), Told("far inputs", False)]), classed(True, [Told("again", None)])
    ('refused', 'differs', 'untold')
    """
    if not correct:
        return "failed" if correct is None else "refused"
    said = {one.agrees for one in controls}
    return "differs" if False in said else "same" if True in said else "untold"


def by_kind(rows: Sequence[Mapping[str, Any]]) -> dict[str, Counter[str]]:
    """Kind -> the number of rows of each class, the kind with most accepted ones first."""
    found: dict[str, Counter[str]] = {}
    for row in rows:
        found.setdefault(row["kind"], Counter())[row["class"]] += 1
    return dict(sorted(found.items(), key=lambda item: (item[1]["refused"] - item[1].total(), item[0])))


def report(rows: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print all of it."""
    counts = Counter(row["class"] for row in rows)
    said = "; ".join(f"{counts[name]} {name} ({what})" for name, what in CLASSES.items() if counts[name])
    console.print(Text(f"{len(rows)} mutants: {said}", style="bold"))
    kinds = table("Kinds", "kind", "drawn", *CLASSES)
    for kind, found in by_kind(rows).items():
        kinds.add_row(kind, str(found.total()), *(str(found[name] or "") for name in CLASSES))
    console.print(kinds)
    statuses = Counter(row["status"] for row in rows if row["class"] == "refused")
    console.print(f"refused as: {', '.join(f'{status} {count}' for status, count in statuses.most_common())}")
    told = Counter(one["control"] for row in rows for one in row["controls"] if one["agrees"] is False)
    if told:
        console.print(f"differences told by: {', '.join(f'{control} {count}' for control, count in told.most_common())}")
    for name in ("differs", "failed", "untold", "same"):
        several = [row for row in rows if row["class"] == name]
        for row in several[: SHOWN if name == "same" else None]:
            _one(row, console)
        if name == "same" and len(several) > SHOWN:
            console.print(f"and {len(several) - SHOWN} more that do the same")


def _one(row: Mapping[str, Any], console: Console) -> None:
    """Print one mutant: what it is, its line before and after, and the control that tells."""
    console.print(Text(f"\n{row['class']}: {row['kind']}, {row['of']} line {row['line']}", style="bold"))
    console.print(Text(f"  - {row['before']}"))
    console.print(Text(f"  + {row['after']}"))
    told = [one for one in row["controls"] if one["agrees"] is False]
    for one in told:
        console.print(Text(f"  {one['control']}: {one['detail'][:200]}"))
    if row["class"] == "failed":
        console.print(Text(f"  {row['detail'][:200]}"))
