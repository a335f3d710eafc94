"""PRS, profiling-based rejection sampling (arXiv 2602.05885): correct but lazy turns rarely train."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from algorithms.coverage import Kind, coverage_of
from rlkernel.checks import check_number, check_word
from rlkernel.interfaces import Removes
from rlkernel.types import Group, Trajectory

Level = Literal["turn", "geometric"]


@dataclass(frozen=True)
class PRS:
    """A correct turn is kept with probability clamp((coverage - threshold) / slope, 0, 1); other turns are always kept.

    There is one draw per turn. With `speedup` set, a correct turn that is at least so fast is kept, too.

    Worked example, defaults: coverage 0.25 is never kept, 0.35 with probability 0.5, 0.4 and more always.
    """

    threshold: float = 0.3
    slope: float = 0.1
    """How much coverage lies between never kept and always kept. 0 makes a hard limit, coverage >= threshold."""
    speedup: float | None = None
    """The speedup from which a correct turn is kept whatever its coverage (the public code's OR rule); None, in the paper's
    scripts, for no such rule."""
    level: Level = "turn"
    """What stands for the coverage of a turn: its own (`turn`), or the geometric mean over those of its trajectory's turns that
    earlier rejections kept (`geometric`). A coverage of 0 and a turn that is not correct count as 1e-8 in the mean, so that one
    failure in about three turns rejects all correct ones."""
    coverage: Kind = "time"
    decimals: int | None = None
    """Round each coverage to so many decimals first; the public code rounds to 2. None does not round."""
    removes: Removes = "loss"
    """What a rejected turn is taken out of. In the public code it still enters its group's baseline, hence `loss`."""
    needs_ratios: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_number(self, "threshold")
        check_number(self, "slope", least=0)
        check_number(self, "speedup", above=0, none="no such rule")
        check_number(self, "decimals", least=0, whole=True, none="no rounding")
        check_word(self, "level", Level)
        check_word(self, "coverage", Kind)
        check_word(self, "removes", Removes)

    def __call__(
        self, group: Group, log_ratios_KTL: torch.Tensor, kept_KTL: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        """See `rlkernel.interfaces.Correction`. Raises ValueError for a correct turn without coverage."""
        K, T, _ = kept_KTL.shape
        keep_KT = torch.ones(K, T, dtype=torch.float64)
        for k, trajectory in enumerate(group.trajectories):
            keep_T = self.keep(trajectory, kept_KTL[k].any(-1).tolist())
            keep_KT[k, : len(trajectory.turns)] = torch.tensor(keep_T, dtype=torch.float64)
        drawn_KT = torch.rand(K, T, dtype=torch.float64, generator=generator)
        return (drawn_KT < keep_KT)[:, :, None].expand(kept_KTL.shape)

    def keep(self, trajectory: Trajectory, counted: Sequence[bool] | None = None) -> list[float]:
        """The probability with which each turn is kept. counted: which turns enter the geometric mean; None: all."""
        evaluations = [turn.evaluation for turn in trajectory.turns]
        coverages = [self._rounded(coverage_of(e, self.coverage)) if e.correct else 0.0 for e in evaluations]
        if self.level == "geometric":
            logs = [math.log(max(c, 1e-8)) for t, c in enumerate(coverages) if counted is None or counted[t]]
            coverages = [math.exp(sum(logs) / len(logs))] * len(coverages) if logs else coverages
        found = []
        for evaluation, c in zip(evaluations, coverages, strict=True):
            fast = self.speedup is not None and evaluation.speedup is not None and evaluation.speedup >= self.speedup
            found.append(1.0 if fast or not evaluation.correct else self._probability(c))
        return found

    def _probability(self, c: float) -> float:
        if self.slope == 0:
            return float(c >= self.threshold)
        return min(max((c - self.threshold) / self.slope, 0.0), 1.0)

    def _rounded(self, c: float) -> float:
        return c if self.decimals is None else round(c, self.decimals)
