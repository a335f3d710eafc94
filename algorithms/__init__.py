"""Algorithms: one small file per method. The tables below are the registry.

A method is a frozen dataclass whose `__call__` is the formula. Start at `trloo`, the shortest; `docs/add_an_estimator.md` shows
how to add one.
"""

from algorithms.contexts import BestWindow, FullHistory, LastTurns, TopTurns
from algorithms.dr_grpo import DrGRPO
from algorithms.flat_groups import FlatGroups
from algorithms.grpo import GRPO
from algorithms.hrd import HRD
from algorithms.layered_reward import LayeredReward
from algorithms.max_rl import MaxRL
from algorithms.mis import MIS
from algorithms.mrs import MRS
from algorithms.pr import PR
from algorithms.prs import PRS
from algorithms.reinforce_pp import ReinforcePP
from algorithms.rloo import RLOO
from algorithms.speed_reward import SpeedReward
from algorithms.tiered_reward import TieredReward
from algorithms.tis import TIS
from algorithms.trloo import TRLOO
from algorithms.unchecked_reward import UncheckedReward
from algorithms.uniform_credit import UniformCredit
from algorithms.veto import Veto
from algorithms.void_turns import VoidTurns
from algorithms.weighted_reward import WeightedReward

ADVANTAGES: dict[str, type] = {
    "grpo": GRPO,
    "trloo": TRLOO,
    "rloo": RLOO,
    "dr_grpo": DrGRPO,
    "max_rl": MaxRL,
    "reinforce_pp": ReinforcePP,
}
REWARDS: dict[str, type] = {
    "speed": SpeedReward,
    "tiered": TieredReward,
    "weighted": WeightedReward,
    "pr": PR,
    "layered": LayeredReward,
    "unchecked": UncheckedReward,
}
CORRECTIONS: dict[str, type] = {
    "mrs": MRS,
    "prs": PRS,
    "void_turns": VoidTurns,
    "flat_groups": FlatGroups,
    "tis": TIS,
    "mis": MIS,
    "veto": Veto,
}
CREDITS: dict[str, type] = {"uniform": UniformCredit, "hrd": HRD}

TABLES: dict[str, dict[str, type]] = {
    "advantage": ADVANTAGES,
    "reward": REWARDS,
    "correction": CORRECTIONS,
    "credit": CREDITS,
}
"""The tables, each by the field of `rlkernel.config.Run` that takes its methods."""

CONTEXTS: dict[str, type] = {"full": FullHistory, "last": LastTurns, "top": TopTurns, "window": BestWindow}
"""The rules for which earlier turns a policy is shown in test-time scaling (`rlkernel.refine`)."""
