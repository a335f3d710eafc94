"""Which conversations are kept of trajectories, for a policy to be trained on: rejection sampling.

A trajectory gives at most one conversation: it ends with the fastest turn that is good enough, and holds what the policy saw in
that turn. Ours; the papers filter whole conversations of a strong model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from experiments.preparation.exchanges import Exchange, Told


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
    """The conversations that are kept, as rows of a table, and why the other trajectories gave none."""

    rows: tuple[dict[str, Any], ...]
    causes: Counter[str]


def choose(trajectories: Iterable[Told], choice: Choice) -> Kept:
    """Apply a choice. Equal conversations are kept once."""
    causes: Counter[str] = Counter()
    by_problem: dict[str, list[dict[str, Any]]] = {}
    seen: set[tuple[str, ...]] = set()
    for told in trajectories:
        found = _conversation(told, choice)
        if isinstance(found, str):
            causes[found] += 1
            continue
        texts = tuple(message["content"] for message in found["messages"])
        if texts in seen:
            causes["kept already"] += 1
            continue
        seen.add(texts)
        by_problem.setdefault(told.problem, []).append(found)
    rows: list[dict[str, Any]] = []
    for own in by_problem.values():
        fastest = sorted(own, key=_speed, reverse=True)[: choice.most or len(own)]
        causes["slower than others of its problem"] += len(own) - len(fastest)
        rows += fastest
    return Kept(tuple(rows), +causes)


def _conversation(told: Told, choice: Choice) -> dict[str, Any] | str:
    """The row of a trajectory, or why there is none."""
    if told.held_out:
        return "a validation problem"
    good = [number for number, turn in enumerate(told.exchanges) if _good(turn, choice)]
    if not good:
        return "no turn is good enough"
    low, high = choice.turns
    fitting = [number for number in good if low <= len(told.shown[number]) + 1 <= high]
    if not fitting:
        return "its length"
    whole = [number for number in fitting if all(told.exchanges[k].whole for k in (*told.shown[number], number))]
    if not whole:
        return "an answer is cut off"
    last = max(whole, key=lambda number: told.exchanges[number].evaluation.speedup or 0.0)
    messages = [{"role": "user", "content": told.prompt}]
    for number in told.shown[last]:
        turn = told.exchanges[number]
        messages += [{"role": "assistant", "content": turn.answer}, {"role": "user", "content": turn.feedback}]
    messages.append({"role": "assistant", "content": told.exchanges[last].answer})
    facts = told.exchanges[last].evaluation
    return {
        "messages": messages,
        "problem": told.problem,
        "turns": len(told.shown[last]) + 1,
        "status": str(facts.status),
        "speedup": facts.speedup,
        "coverage": facts.coverage,
        "timing": facts.timing,
        "source": told.place,
    }


def _good(turn: Exchange, choice: Choice) -> bool:
    facts = turn.evaluation
    fast = (facts.speedup or 0.0) >= choice.speedup and (facts.coverage or 0.0) >= choice.coverage
    return facts.correct and fast if choice.correct else True


def _speed(row: dict[str, Any]) -> float:
    return float(row["speedup"] or 0.0)
