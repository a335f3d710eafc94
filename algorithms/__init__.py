"""Algorithms: one small file per method. The tables below are the registry.

A method is a frozen dataclass whose `__call__` is the formula. Start at `trloo`, the shortest; `docs/add_an_estimator.md` shows
how to add one.
"""

from importlib import import_module

from rlkernel.environment.speed_reward import SpeedReward
from rlkernel.uniform import Uniform


def _class(place: str) -> type:
    """The class at `module.Class` of this package.

    >>> _class("trloo.TRLOO").__name__
    'TRLOO'
    """
    module, _, name = place.partition(".")
    found: type = getattr(import_module(f"algorithms.{module}"), name)
    return found


ADVANTAGES: dict[str, type] = {
    "grpo": _class("grpo.GRPO"),
    "trloo": _class("trloo.TRLOO"),
    "rloo": _class("rloo.RLOO"),
    "dr_grpo": _class("dr_grpo.DrGRPO"),
    "max_rl": _class("max_rl.MaxRL"),
    "reinforce_pp": _class("reinforce_pp.ReinforcePP"),
}
REWARDS: dict[str, type] = {
    "speed": SpeedReward,
    "tiered": _class("tiered_reward.TieredReward"),
    "weighted": _class("weighted_reward.WeightedReward"),
    "pr": _class("pr.PR"),
    "layered": _class("layered_reward.LayeredReward"),
    "unchecked": _class("unchecked_reward.UncheckedReward"),
}
CORRECTIONS: dict[str, type] = {
    "mrs": _class("mrs.MRS"),
    "prs": _class("prs.PRS"),
    "void_turns": _class("void_turns.VoidTurns"),
    "flat_groups": _class("flat_groups.FlatGroups"),
    "tis": _class("tis.TIS"),
    "mis": _class("mis.MIS"),
    "veto": _class("veto.Veto"),
}
CREDITS: dict[str, type] = {"uniform": _class("uniform_credit.UniformCredit"), "hrd": _class("hrd.HRD")}

SAMPLERS: dict[str, type] = {
    "every_problem": Uniform,
    "by_level": _class("by_level.ByLevel"),
    "by_solve_rate": _class("by_solve_rate.BySolveRate"),
    "dynamic_sampling": _class("dynamic_sampling.DynamicSampling"),
    "held_out": _class("held_out.HeldOut"),
}

TABLES: dict[str, dict[str, type]] = {
    "advantage": ADVANTAGES,
    "reward": REWARDS,
    "correction": CORRECTIONS,
    "credit": CREDITS,
    "sampler": SAMPLERS,
}
"""The tables, each by the field of `rlkernel.config.Run` that takes its methods."""

CONTEXTS: dict[str, type] = {
    "full": _class("contexts.FullHistory"),
    "last": _class("contexts.LastTurns"),
    "top": _class("contexts.TopTurns"),
    "window": _class("contexts.BestWindow"),
}
"""The rules for which earlier turns a policy is shown in test-time scaling (`rlkernel.refine`)."""
