"""Which conversations are kept of attempts, for a policy to be trained on: rejection sampling.

An attempt gives at most one conversation: it ends with the fastest turn that is good enough, and holds what the policy saw in
that turn. Ours; the papers filter whole conversations of a strong model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from experiments.preparation.exchanges import Attempt, Exchange


@dataclass(frozen=True)
class Choice:
    """What the last turn of a conversation must be, and how long the conversation."""

    correct: bool = True
    speedup: float = 0.0
    """The least speedup."""
    coverage: float = 0.0
    """The least share of the time that live launches have."""
    turns: tuple[int, int] = (1, 1 << 30)
    """The fewest and the most turns."""
    most: int = 0
    """The most conversations of one problem, the fastest ones; 0: all."""


@dataclass(frozen=True)
class Kept:
    """The conversations that are kept, as rows of a table, and why the other attempts were not."""

    rows: tuple[dict[str, Any], ...]
    causes: Counter[str]


def choose(attempts: Iterable[Attempt], choice: Choice) -> Kept:
    """Apply a choice. Equal conversations are kept once."""
    causes: Counter[str] = Counter()
    by_problem: dict[str, list[dict[str, Any]]] = {}
    seen: set[tuple[str, ...]] = set()
    for attempt in attempts:
        found = _conversation(attempt, choice)
        if isinstance(found, str):
            causes[found] += 1
            continue
        texts = tuple(message["content"] for message in found["messages"])
        if texts in seen:
            causes["kept already"] += 1
            continue
        seen.add(texts)
        by_problem.setdefault(attempt.problem, []).append(found)
    rows: list[dict[str, Any]] = []
    for own in by_problem.values():
        fastest = sorted(own, key=_speed, reverse=True)[: choice.most or len(own)]
        causes["slower than others of its problem"] += len(own) - len(fastest)
        rows += fastest
    return Kept(tuple(rows), +causes)


def _conversation(attempt: Attempt, choice: Choice) -> dict[str, Any] | str:
    """The row of an attempt, or why there is none."""
    if attempt.held_out:
        return "a validation problem"
    good = [number for number, turn in enumerate(attempt.exchanges) if _good(turn, choice)]
    if not good:
        return "no turn is good enough"
    low, high = choice.turns
    fitting = [number for number in good if low <= len(attempt.shown[number]) + 1 <= high]
    if not fitting:
        return "its length"
    whole = [number for number in fitting if all(attempt.exchanges[k].whole for k in (*attempt.shown[number], number))]
    if not whole:
        return "an answer is cut off"
    last = max(whole, key=lambda number: attempt.exchanges[number].evaluation.speedup or 0.0)
    messages = [{"role": "user", "content": attempt.prompt}]
    for number in attempt.shown[last]:
        turn = attempt.exchanges[number]
        messages += [{"role": "assistant", "content": turn.answer}, {"role": "user", "content": turn.feedback}]
    messages.append({"role": "assistant", "content": attempt.exchanges[last].answer})
    facts = attempt.exchanges[last].evaluation
    return {
        "messages": messages,
        "problem": attempt.problem,
        "turns": len(attempt.shown[last]) + 1,
        "status": str(facts.status),
        "speedup": facts.speedup,
        "coverage": facts.coverage,
        "timing": facts.timing,
        "source": attempt.place,
    }


def _good(turn: Exchange, choice: Choice) -> bool:
    facts = turn.evaluation
    fast = (facts.speedup or 0.0) >= choice.speedup and (facts.coverage or 0.0) >= choice.coverage
    return facts.correct and fast if choice.correct else True


def _speed(row: dict[str, Any]) -> float:
    return float(row["speedup"] or 0.0)
