"""The reward that an evaluator without the hacking check would pay (arXiv 2602.05885).

It is for comparison, never to train a policy for use.
"""

from __future__ import annotations

from dataclasses import dataclass

from rlkernel.checks import check_number
from rlkernel.types import Evaluation


@dataclass(frozen=True)
class UncheckedReward:
    """R = correct_weight + speed_weight * min(speedup, cap) for outputs that match, whatever the status, otherwise 0.

    `no_kernel`, `inconsistent` and `implausible` are thus paid as if they were correct. With `launched`, some Triton kernel must
    have been launched, whether its result is used or not, as public code checks.

    Worked example: outputs of torch at 1.0x with an unused launch are worth 0.5 + 0.5 * 1 = 1, also with `launched`. Without any
    launch they are worth 1, and 0 with `launched`.
    """

    launched: bool = False
    correct_weight: float = 0.5
    speed_weight: float = 0.5
    cap: float = 3.0

    def __post_init__(self) -> None:
        check_number(self, "correct_weight", "speed_weight", least=0)
        check_number(self, "cap", least=0, infinite=True)

    def __call__(self, evaluation: Evaluation) -> float:
        """See `rlkernel.interfaces.Reward`. Raises ValueError for a correct evaluation that has no speedup."""
        if evaluation.correct and evaluation.speedup is None:
            raise ValueError("a correct evaluation without a speedup cannot be rewarded: the evaluator must report one")
        believed = evaluation.correct or bool(evaluation.matches)
        # What matched but was never timed has no speed to pay for.
        if not believed or evaluation.speedup is None or (self.launched and not evaluation.launches):
            return 0.0
        return self.correct_weight + self.speed_weight * min(evaluation.speedup, self.cap)
