"""The reward of arXiv 2602.05885 without its profiling term."""

from __future__ import annotations

from dataclasses import dataclass

from rlkernel.checks import check_number
from rlkernel.types import Evaluation


@dataclass(frozen=True)
class SpeedReward:
    """R = correct_weight * [correct] + speed_weight * min(speedup, cap) for a correct candidate, otherwise 0.

    Any status but `correct` is worth 0: failures, and the decoys `no_kernel`, `inconsistent` and `implausible`, whatever
    speedup they carry.

    Worked example: correct at 1.4x is 0.5 + 0.5 * 1.4 = 1.2; correct at 8x is 0.5 + 0.5 * 3 = 2.
    """

    correct_weight: float = 0.5
    speed_weight: float = 0.5
    cap: float = 3.0

    def __post_init__(self) -> None:
        check_number(self, "correct_weight", "speed_weight", least=0)
        check_number(self, "cap", least=0, infinite=True)

    def __call__(self, evaluation: Evaluation) -> float:
        """See `rlkernel.interfaces.Reward`. Raises ValueError for a correct evaluation that has no speedup."""
        if not evaluation.correct:
            return 0.0
        if evaluation.speedup is None:
            raise ValueError("a correct evaluation without a speedup cannot be rewarded: the evaluator must report one")
        return self.correct_weight + self.speed_weight * min(evaluation.speedup, self.cap)
