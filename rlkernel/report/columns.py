"""The numbers that tables of arms show: their names, how they read as text, and what they can be."""

from __future__ import annotations

from dataclasses import dataclass

from rlkernel.statistics import Comparison

SHARES = ("coverage", "effective_tokens", "kept_turns", "kept_tokens", "clip_fraction", "frac_reward_zero_std")
"""The metrics between 0 and 1 whose names do not tell."""
MOST_DECIMALS = 3
"""The most decimals that an interval shows beyond the usual ones of its metric."""


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

    def show(self, value: float, signed: bool = False, more: int = 0) -> str:
        """A value of the metric as text. more: decimals beyond the usual ones.

        >>> METRICS[1].show(0.456), METRICS[0].show(-0.25, signed=True), METRICS[1].show(-0.001, signed=True)
        ('46 %', '-0.25', '0 %')
        >>> METRICS[1].show(-0.001, signed=True, more=1)
        '-0.1 %'
        """
        digits = self._digits + more
        shown = round(100 * value if self.percent else value, digits) + 0.0
        # A number that is rounded to 0 may have either sign, and shows none.
        sign = "+" if signed and shown else ""
        return f"{shown:{sign}.{digits}f}" + (" %" if self.percent else "")

    def exact(self, value: float) -> str:
        """A value with the digits that it has, up to four, where 0 is to mean 0.

        >>> METRICS[0].exact(0.0), METRICS[0].exact(0.004), METRICS[1].exact(1.0)
        ('0', '0.004', '100 %')
        """
        return f"{100 * value if self.percent else value:.4g}" + (" %" if self.percent else "")

    def show_difference(self, difference: Comparison, margin: float = 0.0, signed: bool = True) -> str:
        """A difference as its mean and Student's interval over seeds, e.g. `+4 % [-2, +10]`; the mean alone for one seed."""
        mean, interval = self.show_mean(difference, margin, signed), self.show_interval(difference, margin, signed)
        return f"{mean} {interval}".rstrip()

    def show_mean(self, difference: Comparison, margin: float = 0.0, signed: bool = True) -> str:
        """The mean of a difference, with as many decimals as its interval."""
        return self.show(difference.mean, signed, self.more(difference, margin))

    def show_interval(self, difference: Comparison, margin: float = 0.0, signed: bool = True) -> str:
        """Student's interval of a difference over seeds, e.g. `[-2, +10]`; empty for one seed. margin: see `more`."""
        if difference.interval is None:
            return ""
        bounds, more = (difference.interval.low, difference.interval.high), self.more(difference, margin)
        low, high = (self.show(bound, signed, more).removesuffix(" %") for bound in bounds)
        return f"[{low}, {high}]"

    def more(self, difference: Comparison, margin: float = 0.0) -> int:
        """How many decimals a difference needs beyond the usual ones, so that no bound of its interval reads as 0, or as the
        margin, that is on one side of it: the reader would see another verdict than the rule, which does not round. At most 3.

        >>> from rlkernel.statistics import Interval
        >>> found = Comparison(0.05, 3, None, Interval(0.05, 0.002, 0.098), None, None)
        >>> METRICS[1].more(found), METRICS[1].show_difference(found)
        (1, '+5.0 % [+0.2, +9.8]')
        """
        if difference.interval is None:
            return 0
        bounds = (difference.interval.low, difference.interval.high)
        return next((more for more in range(MOST_DECIMALS) if not self._misread(bounds, margin, more)), MOST_DECIMALS)

    def _misread(self, bounds: tuple[float, float], margin: float, more: int) -> bool:
        """Whether a bound reads as a threshold of the rule that it is not at."""
        unit = 10.0 ** -(self._digits + more) / (100 if self.percent else 1)
        return any(
            abs(bound - threshold) > 1e-9 and round(bound / unit) == round(threshold / unit)
            for bound in bounds
            for threshold in {0.0, margin, -margin}
        )

    @property
    def _digits(self) -> int:
        return 0 if self.percent else 2


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
