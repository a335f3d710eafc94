"""The experiments that train arms, one module each, and who shares which arm."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from rlkernel.commands.experiment import Experiment
from rlkernel.config import Run

NAMES = (
    "first_look",
    "reward_hacking",
    "multi_turn_estimators",
    "group_size",
    "plain_descent",
    "mismatch",
    "off_policy",
    "twice_the_rate",
    "lazy_optimisation",
    "full_recipe",
    "hierarchical_reward",
    "transfer",
)


def load(name: str) -> Experiment:
    """The `EXPERIMENT` of a module."""
    experiment: Experiment = importlib.import_module(f"experiments.{name}").EXPERIMENT
    return experiment


def sharing(own: str, arms: Mapping[str, Run]) -> Mapping[str, tuple[str, ...]]:
    """The names of the other experiments that have an arm, by arm of the experiment `own`. An arm of the same name that differs
    in anything is another one, and is trained for itself."""
    others = {name: load(name).arms for name in NAMES if name != own}
    return {arm: tuple(name for name, of in others.items() if of.get(arm) == run) for arm, run in arms.items()}
