"""Which problems are kept: each that is left out has one cause, the first of a fixed order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from experiments.preparation.looked import Looked


@dataclass(frozen=True)
class Filters:
    """What a problem must be to be kept."""

    min_us: float = 0.0
    max_us: float = float("inf")
    """Bounds of the reference's time in microseconds."""
    levels: tuple[int, ...] = ()
    """The levels that are kept; empty: all."""
    operators: tuple[str, ...] = ()
    """Operators of which the reference must have one, e.g. aten.mm; empty: no such wish."""
    without: tuple[str, ...] = ()
    """Operators that the reference must not have."""
    degenerate: bool = False
    """Whether problems are kept that can be solved without doing the work."""
    deterministic: bool = False
    """Whether problems are left out whose reference draws numbers, as dropout does."""


@dataclass(frozen=True)
class Verdict:
    """Whether a problem is kept."""

    looked: Looked
    cause: str
    """A word or two for the table of causes; empty for a problem that is kept."""
    detail: str = ""


def judge(looked: Looked, filters: Filters, known: Mapping[str, str]) -> Verdict:
    """The verdict on one problem. known: normal form of a held-out problem -> its name."""
    survey, ops = looked.survey, {fact.op for fact in looked.survey.ops}
    twin = next((known[form] for form in looked.forms if form in known), None)
    checks = (
        ("broken", survey.broken),
        ("contaminated", twin and f"it is {twin} in other clothes"),
        ("degenerate", not filters.degenerate and survey.degenerate),
        ("random", filters.deterministic and survey.random and "two calls on the same inputs differ"),
        ("too fast", survey.reference_us < filters.min_us and f"{survey.reference_us:.1f} us"),
        ("too slow", survey.reference_us > filters.max_us and f"{survey.reference_us:.1f} us"),
        ("level", bool(filters.levels) and looked.problem.level not in filters.levels and f"level {looked.problem.level}"),
        ("operators", _operators(ops, filters)),
    )
    for cause, detail in checks:
        if detail:
            return Verdict(looked, cause, str(detail))
    return Verdict(looked, "")


def _operators(ops: set[str], filters: Filters) -> str:
    if unwanted := ops & set(filters.without):
        return f"it has {min(unwanted)}"
    return "it has none of those asked for" if filters.operators and not ops & set(filters.operators) else ""


def forms_of(held_out: Iterable[Looked]) -> dict[str, str]:
    """Normal form -> name, for the problems that no training row may equal."""
    return {form: looked.problem.name for looked in held_out for form in looked.forms}


def judge_all(looked: Sequence[Looked], filters: Filters, known: Mapping[str, str]) -> list[Verdict]:
    """The verdicts in the order of the problems."""
    return [judge(one, filters, known) for one in looked]
