"""The experiments that train arms, one module each, and who shares which arm."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from rlkernel.commands.experiment import Experiment

NAMES = (
    "first_look",
    "reward_hacking",
    "multi_turn_estimators",
    "group_size",
    "plain_descent",
    "mismatch",
    "off_policy",
    "lazy_optimisation",
    "full_recipe",
    "hierarchical_reward",
    "transfer",
)


def load(name: str) -> Experiment:
    """The `EXPERIMENT` of a module."""
    experiment: Experiment = importlib.import_module(f"experiments.{name}").EXPERIMENT
    return experiment


def sharing(own: str) -> Mapping[str, tuple[str, ...]]:
    """The names of the other experiments that have an arm, by arm of the experiment `own`."""
    others = {name: load(name).arms for name in NAMES if name != own}
    arms = {arm for of in others.values() for arm in of}
    return {arm: tuple(name for name, of in others.items() if arm in of) for arm in arms}
