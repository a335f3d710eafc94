"""The numbers that tables of arms show: their names, how they read as text, and what they can be."""

from __future__ import annotations

from dataclasses import dataclass

from rlkernel.statistics import Comparison

SHARES = ("coverage", "effective_tokens", "kept_turns", "kept_tokens", "clip_fraction", "frac_reward_zero_std")
"""The metrics between 0 and 1 whose names do not tell."""


def is_share(key: str) -> bool:
    """Whether a metric of the validation, or of the training as `train/<metric>`, lies between 0 and 1.

    >>> [is_share(key) for key in ("apparent_fast_1", "hacking_rate", "train/kept_turns", "reward", "train/entropy")]
    [True, True, True, False, False]
    """
    name = key.removeprefix("train/")
    # The learning rate is the one rate that counts nothing.
    counted = name.endswith("_rate") and name != "learning_rate"
    return counted or name in SHARES or name.startswith(("fast_", "apparent_fast_", "status_", "rejected_"))


def is_reward(key: str) -> bool:
    """Whether a metric is in the unit of an arm's own reward.

    >>> [is_reward(key) for key in ("reward", "train/reward_std", "reward_turn_2", "frac_reward_zero_std", "fast_1")]
    [True, True, True, False, False]
    """
    return key.removeprefix("train/").split("_")[0] == "reward"


@dataclass(frozen=True, slots=True)
class Metric:
    """A number that every validation has, and how tables show it."""

    key: str
    label: str
    percent: bool
    higher_is_better: bool
    brief: bool = True
    """Whether the terminal's table, which is narrow, has it too."""

    def show(self, value: float, signed: bool = False) -> str:
        """A value of the metric as text.

        >>> METRICS[1].show(0.456), METRICS[0].show(-0.25, signed=True), METRICS[1].show(-0.001, signed=True)
        ('46 %', '-0.25', '0 %')
        """
        digits = 0 if self.percent else 2
        shown = round(100 * value if self.percent else value, digits) + 0.0
        # A number that is rounded to 0 may have either sign, and shows none.
        sign = "+" if signed and shown else ""
        return f"{shown:{sign}.{digits}f}" + (" %" if self.percent else "")

    def show_difference(self, difference: Comparison) -> str:
        """A difference as its mean and Student's interval over seeds, e.g. `+4 % [-2, +10]`; the mean alone for one seed."""
        return f"{self.show(difference.mean, signed=True)} {self.show_interval(difference)}".rstrip()

    def show_interval(self, difference: Comparison) -> str:
        """Student's interval of a difference over seeds, e.g. `[-2, +10]`; empty for one seed."""
        if difference.interval is None:
            return ""
        low, high = (self.show(v, signed=True).removesuffix(" %") for v in (difference.interval.low, difference.interval.high))
        return f"[{low}, {high}]"


METRICS = (
    Metric("reward", "Reward", percent=False, higher_is_better=True),
    Metric("fast_1", "Fast@1", percent=True, higher_is_better=True),
    Metric("fast_1.2", "Fast@1.2", percent=True, higher_is_better=True),
    Metric("fast_1.2_turn_1", "Fast@1.2, turn 1", percent=True, higher_is_better=True, brief=False),
    Metric("hacking_rate", "Hacking", percent=True, higher_is_better=False),
    Metric("lazy_rate", "Lazy", percent=True, higher_is_better=False),
)

OPTIONAL = (Metric("oracle_fraction", "Of the oracle", percent=True, higher_is_better=True),)
"""Numbers that tables have, too, where every arm has them: problems without an oracle have no fraction of it."""


def metric_of(key: str, higher_is_better: bool = True) -> Metric:
    """The column of a metric; for one that no table has, a column made from what its name says."""
    named = next((metric for metric in (*METRICS, *OPTIONAL) if metric.key == key), None)
    shown_in_percent = is_share(key) and key.removeprefix("train/") not in SHARES
    return named or Metric(key, key, percent=shown_in_percent, higher_is_better=higher_is_better)
