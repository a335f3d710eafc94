"""Refuses what a method returns that would train as nonsense, or fail later, where nobody sees whose fault it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real

from rlkernel.errors import UsageError
from rlkernel.interfaces import Credit, Reward, Sampler
from rlkernel.types import Evaluation, Turn


def reward_of(reward: Reward, evaluation: Evaluation) -> float:
    """What a reward pays for an evaluation. Raises UsageError for what is no finite number."""
    value = reward(evaluation)
    if not _is_number(value):
        raise UsageError(
            f"{type(reward).__name__} returned {value!r} for a candidate of status {evaluation.status}: a reward gives a finite "
            "number, a float and no tensor"
        )
    return float(value)


def rewards_of(credit: Credit, turn: Turn) -> tuple[float, ...]:
    """What a turn is worth to a credit. Raises UsageError for what are not finite numbers."""
    values = credit.rewards(turn)
    if not isinstance(values, tuple) or not values or not all(map(_is_number, values)):
        raise UsageError(
            f"{type(credit).__name__}.rewards returned {values!r}: a credit gives a tuple of finite numbers, one for each "
            "advantage that it is called with"
        )
    return tuple(map(float, values))


def check_chosen(sampler: Sampler, chosen: Sequence[int], problems: int, count: int, without: frozenset[int]) -> None:
    """Raise UsageError for a draw that is not of `count` different problems out of so many; where some are drawn already, it may
    be of fewer others."""
    name = type(sampler).__name__
    if any(not isinstance(index, Integral) or not 0 <= index < problems for index in chosen):
        raise UsageError(f"{name} chose {_shown(chosen)}: a sampler gives indices of problems, here from 0 to {problems - 1}")
    if len(set(chosen)) < len(chosen) or without & set(chosen):
        again = f", of which {_shown(sorted(without))} are drawn already" if without else ""
        raise UsageError(f"{name} chose {_shown(chosen)}{again}: a sampler gives each problem of a step once")
    if len(chosen) > count or (len(chosen) < count and not without):
        raise UsageError(f"{name} chose {_shown(chosen)}: a sampler gives {count} problems where it is asked for {count}")


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and math.isfinite(value)


def _shown(indices: Sequence[int]) -> str:
    """Indices as text, of which a batch has hundreds.

    >>> _shown([4, 1])
    '(4, 1)'
    """
    first = ", ".join(map(str, indices[:8]))
    return f"({first}, ... {len(indices)} in all)" if len(indices) > 8 else f"({first})"
