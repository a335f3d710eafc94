"""Curves of metrics over steps, arm by arm: the values of every seed, and their mean and range where all seeds were measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rlkernel.report.columns import is_reward
from rlkernel.report.summary import RunRecord, same_reward

Line = Literal["-", "--"]


@dataclass(frozen=True, slots=True)
class Panel:
    """One drawing of a figure."""

    title: str
    lines: tuple[tuple[str, Line, str], ...]
    """The lines of an arm, each as (metric, style, text in the legend). A metric of the training is `train/<metric>`."""
    share: bool
    """Whether the values are shares, which are shown in percent."""
    log: bool = False
    """Whether the axis is logarithmic above 1, for values that differ by orders of magnitude."""
    floor: float = 0.0
    """The size below which values are numerics alone, and drawn as 0."""

    @property
    def trains(self) -> bool:
        """Whether all that is drawn are numbers of the training."""
        return all(key.startswith("train/") for key, _, _ in self.lines)


CORRECT = Panel("Correct turns", (("correct_rate", "-", ""),), True)
"""What stands where rewards cannot be compared."""
PANELS = (
    Panel("Mean reward", (("reward", "-", ""),), False),
    Panel("Fast@1", (("fast_1", "-", "any turn"), ("fast_1_turn_1", "--", "first turn")), True),
    Panel("Fast@1.2", (("fast_1.2", "-", "any turn"), ("fast_1.2_turn_1", "--", "first turn")), True),
    Panel("Hacking and lazy rates", (("hacking_rate", "-", "hacking"), ("lazy_rate", "--", "lazy")), True),
)
ORACLE = Panel("Of the oracle's log-speedup", (("oracle_fraction", "-", ""),), True)
"""What is drawn beside the panels of an experiment where problems have oracles."""
NUMERICS = 5e-6
"""Differences of log-probabilities, in nats, that are float32's rounding. A KL of the reference is of their squares."""
TRAINING_PANELS = (
    Panel("Loss", (("train/loss", "-", ""),), False),
    Panel("Entropy, nats per token", (("train/entropy", "-", ""),), False),
    Panel("Gradient norm", (("train/grad_norm", "-", ""),), False),
    Panel("Mismatch of log-probabilities", (("train/mismatch", "-", ""),), False, floor=NUMERICS),
    Panel("KL from the start, nats per token", (("train/kl_reference", "-", ""),), False, floor=1e-9),
    Panel("Spread of reward within groups", (("train/reward_std", "-", ""),), False),
    Panel("Groups without spread", (("train/frac_reward_zero_std", "-", ""),), True),
    Panel(
        "Gradient norm by turn", (("train/grad_norm_turn_1", "-", "turn 1"), ("train/grad_norm_turn_3", "--", "turn 3")), False
    ),
    Panel("KL of rollout against training", (("train/kl_k3", "-", "k3"), ("train/kl_k1", "--", "k1")), False, floor=NUMERICS),
    Panel("Ratios outside 1/2 and 2", (("train/extreme_ratios", "-", ""),), True),
    Panel(
        "Effective samples",
        (("train/effective_trajectories", "-", "trajectories"), ("train/effective_tokens", "--", "tokens")),
        True,
    ),
    Panel("Turns that train", (("train/kept_turns", "-", ""),), True),
    Panel("KL of a batch's updates", (("train/approx_kl", "-", ""),), False),
    Panel("Largest ratio of a batch's updates", (("train/largest_ratio", "-", ""),), False, log=True),
    Panel("Clipped tokens", (("train/clip_fraction", "-", ""),), True),
    Panel("Age of the samples, steps", (("train/age", "-", ""),), False),
)
"""What the training steps say of themselves."""


@dataclass(frozen=True, slots=True)
class Curve:
    """One metric of one arm."""

    seeds: tuple[Mapping[int, float], ...]
    """The values of each seed by step."""
    means: Mapping[int, float]
    """The mean over the seeds, at the steps where every seed was measured."""
    ranges: Mapping[int, tuple[float, float]]
    """The least and the largest value of the seeds, at the same steps."""


def curve(members: Sequence[RunRecord], key: str) -> Curve | None:
    """The curve of a metric, `train/<metric>` for one of the training; None where a seed did not record it."""
    train, name = key.startswith("train/"), key.removeprefix("train/")
    seeds = tuple(
        {row["step"]: row[name] for row in (run.training if train else run.validation) if row.get(name) is not None}
        for run in members
    )
    if not seeds or not all(seeds):
        return None
    steps = sorted(set.intersection(*(set(points) for points in seeds)))
    values = {step: [points[step] for points in seeds] for step in steps}
    means = {step: sum(found) / len(found) for step, found in values.items()}
    return Curve(seeds, means, {step: (min(found), max(found)) for step, found in values.items()})


def by_split(panels: Sequence[Panel]) -> tuple[tuple[Panel, ...], tuple[Panel, ...]]:
    """The panels of an experiment, as (those of the validation, those of the training). Every training has `TRAINING_PANELS`,
    but for those all of whose lines an experiment draws in a panel of its own."""
    own = tuple(panel for panel in panels if panel.trains)
    drawn = {key for panel in own for key, _, _ in panel.lines}
    others = (panel for panel in TRAINING_PANELS if not {key for key, _, _ in panel.lines} <= drawn)
    return tuple(panel for panel in panels if not panel.trains), (*own, *others)


def comparable_panels(runs: Sequence[RunRecord], panels: Sequence[Panel]) -> tuple[Panel, ...]:
    """The panels in which these runs can stand side by side: where they are paid by different rewards, the share of correct turns
    stands for a validation's reward, and a panel of the training about rewards is left out."""
    if same_reward(runs):
        return tuple(panels)
    kept = []
    for panel in panels:
        keys = [key for key, _, _ in panel.lines]
        if not any(is_reward(key) for key in keys):
            kept.append(panel)
        elif not all(key.startswith("train/") for key in keys):
            kept.append(CORRECT)
    return tuple(kept)
