"""The weighted reward of arXiv 2602.05885's public code: a fixed sum for being correct and a fixed sum for being faster."""

from __future__ import annotations

from dataclasses import dataclass

from rlkernel.checks import check_number
from rlkernel.types import Evaluation


@dataclass(frozen=True)
class WeightedReward:
    """R = correct_weight * [correct] + speed_weight * [correct and speedup >= threshold].

    The public code adds the coverage: `PR(inner=WeightedReward(), weight=1.0)`.

    Worked example: correct at 1.4x is 0.5 + 0.5 = 1; correct at 1.0x is 0.5.
    """

    correct_weight: float = 0.5
    speed_weight: float = 0.5
    threshold: float = 1.01

    def __post_init__(self) -> None:
        check_number(self, "correct_weight", "speed_weight", "threshold", least=0)

    def __call__(self, evaluation: Evaluation) -> float:
        """See `rlkernel.interfaces.Reward`. Raises ValueError for a correct evaluation that has no speedup."""
        if not evaluation.correct:
            return 0.0
        if evaluation.speedup is None:
            raise ValueError("a correct evaluation without a speedup cannot be rewarded: the evaluator must report one")
        return self.correct_weight + self.speed_weight * (evaluation.speedup >= self.threshold)
