"""PR, the profiling-based reward (arXiv 2602.05885): a bonus for kernels that do a large part of the work."""

from __future__ import annotations

from dataclasses import dataclass

from algorithms.coverage import Kind, coverage_of
from rlkernel.checks import check_number, check_word
from rlkernel.environment.speed_reward import SpeedReward
from rlkernel.interfaces import Reward
from rlkernel.types import Evaluation


@dataclass(frozen=True)
class PR:
    """R = inner reward + weight * coverage * [correct].

    A gate goes outside, so that it refuses the bonus, too: `LayeredReward(PR())`.

    Worked example: correct at 1.4x with coverage 0.5: 0.5 + 0.5 * 1.4 + 0.5 * 0.5 = 1.45. The largest value is 2.5.
    """

    inner: Reward = SpeedReward()  # noqa: RUF009  (a frozen value)
    weight: float = 0.5
    """The weight of the coverage: 0.5 in the paper's scripts, 0.25 by default in its library."""
    coverage: Kind = "time"

    def __post_init__(self) -> None:
        check_number(self, "weight", least=0)
        check_word(self, "coverage", Kind)

    def __call__(self, evaluation: Evaluation) -> float:
        """See `rlkernel.interfaces.Reward`. Raises ValueError for a correct evaluation without coverage."""
        if not evaluation.correct:
            return self.inner(evaluation)
        return self.inner(evaluation) + self.weight * coverage_of(evaluation, self.coverage)
