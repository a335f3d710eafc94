"""The stepped reward of arXiv 2602.05885's public code: a value per tier, negative for failures."""

from __future__ import annotations

from dataclasses import dataclass

from rlkernel.checks import check_number
from rlkernel.errors import UsageError
from rlkernel.types import Evaluation, Status

NOT_COMPILED = frozenset({Status.INVALID, Status.COMPILE_ERROR, Status.UNTRACEABLE})
WRONG = frozenset({Status.INCORRECT, Status.RUNTIME_ERROR, Status.OUT_OF_BOUNDS})


@dataclass(frozen=True)
class TieredReward:
    """R = the value of the highest tier that the speedup reaches if correct, otherwise a value by kind of failure.

    The statuses `invalid`, `compile_error` and `untraceable` count as not compiled; `incorrect`, `runtime_error` and
    `out_of_bounds` count as wrong; every other failure, decoys included, is worst.

    Worked example: correct at 1.6x is 0.6 (tier 1.5); correct at 0.9x is -0.1; a compile error is -0.5.
    """

    tiers: tuple[tuple[float, float], ...] = ((3.0, 1.0), (2.0, 0.8), (1.5, 0.6), (1.2, 0.4), (1.0, 0.2))
    """Pairs of a least speedup and its value, fastest first."""
    slow: float = -0.1
    """The value of a correct candidate below the last tier."""
    wrong: float = -0.3
    not_compiled: float = -0.5
    worst: float = -1.0

    def __post_init__(self) -> None:
        check_number(self, "slow", "wrong", "not_compiled", "worst")
        least = [speedup for speedup, _ in self.tiers]
        if least != sorted(set(least), reverse=True):
            raise UsageError(f"TieredReward.tiers begin at {least}: write the fastest first, each once")

    def __call__(self, evaluation: Evaluation) -> float:
        """See `rlkernel.interfaces.Reward`. Raises ValueError for a correct evaluation that has no speedup."""
        if evaluation.status in NOT_COMPILED:
            return self.not_compiled
        if evaluation.status in WRONG:
            return self.wrong
        if not evaluation.correct:
            return self.worst
        if evaluation.speedup is None:
            raise ValueError("a correct evaluation without a speedup cannot be rewarded: the evaluator must report one")
        return next((value for least, value in self.tiers if evaluation.speedup >= least), self.slow)
