"""Claims about two arms, and the rule that says whether runs reproduce them. Nobody's judgement enters a verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rlkernel.report.columns import is_reward, is_share, metric_of
from rlkernel.report.summary import RunRecord, Window, compare_seeds, paired, same_reward, value
from rlkernel.statistics import LEVEL, MOST_SEEDS, Comparison, Interval, detectable, holm, p_text, seeds_needed

LATE = Window(share=0.5)
"""The window that claims are about by default: the second half of a run's measurements."""
RULE = (
    "The difference of two arms is taken between runs of equal seed that began from one policy, each averaged over the "
    "claim's window, in the direction of the claim. The claims of an experiment are one family: p is Student's over the "
    "seeds, Holm-adjusted over those of the family that have runs, so that runs of further claims may take back a verdict. "
    "Reproduced: the 95 % interval (Student's, over seeds) lies above 0, and p is at most 0.05; it is small where the "
    "interval lies within the margin. Not reproduced: the interval lies below 0 with such a p, or wholly within the margin "
    "around 0, which is each claim's own test and adjusted for no other. Unclear: anything else, and fewer than two seeds. "
    "Unclear after correction: the interval alone excludes 0, but p is above 0.05. Small, unclear after correction: the same "
    "of an interval within the margin; there may be a small difference, but none of the margin's size."
)
AFTER_CORRECTION = "unclear after correction"
"""The word for an interval that excludes 0 beside a corrected p that is above 0.05."""


class Verdict(StrEnum):
    """What runs say about a claim."""

    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    UNCLEAR = "unclear"
    NO_RUNS = "no finished runs"
    NOT_RECORDED = "not recorded"
    NOT_COMPARABLE = "not comparable"


UNJUDGED = frozenset({Verdict.NO_RUNS, Verdict.NOT_RECORDED})
"""The verdicts that say of the runs, not of the claim, why it cannot be judged."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim that the arm `better` is above the arm `worse` in `metric`, or below it with higher=False."""

    text: str
    better: str
    """The name of an arm."""
    worse: str
    metric: str
    """A metric of the validation; of the training, as `train/<metric>`."""
    paper: str
    """What the paper reports, in numbers where it gives them."""
    higher: bool = True
    window: Window = LATE
    worse_window: Window | None = None
    """The window of `worse`, where it is another one: so an arm is compared with itself at another step."""
    among: str = ""
    """A part of the names of the problems that the claim is about; empty: all of the validation."""
    after_look: bool = False
    """Whether the claim was written after a look at runs that it speaks of."""
    certain: bool = False
    """Whether the direction holds by definition, so that runs say something of the size alone: it is no headline."""
    margin: float = 0.05
    """A difference, in the metric's unit, below which nobody would care. An interval within the margin is no reproduction, unless
    it lies above 0 with a corrected p that is small enough: then it is one, and is called small."""

    @property
    def told(self) -> str:
        """The claim as readers are told it: marked where it was written after a look at runs."""
        return self.text + (" (added after a look)" if self.after_look else "")

    @property
    def of_a_paper(self) -> bool:
        """Whether a paper makes the claim; all others are our own questions."""
        return not self.paper.startswith(("not in the paper", "our own question"))

    @property
    def subject(self) -> tuple[object, ...]:
        """What is compared, which is equal for claims that say the same in other words, with another margin, or from the other
        side."""
        sides = [(self.better, self.window), (self.worse, self.worse_window or self.window)]
        return (*(sides if self.higher else reversed(sides)), self.metric, self.among)


@dataclass(frozen=True, slots=True)
class DecidedClaim:
    """A claim, and what runs say about it."""

    claim: Claim
    verdict: Verdict
    difference: Comparison | None
    """The difference in the direction of the claim: above 0 speaks for it. None without runs of both arms."""
    adjusted_p: float | None
    """Student's p over the seeds, Holm-adjusted over the claims; None for fewer than two seeds."""
    reason: str
    family: int = 1
    """The number of claims for which p is adjusted, this one included."""
    level: float | None = None
    """What every run of both arms has in the claim's window, as at the least or the most that a metric can be, so that there is
    nothing to tell apart; None where one has another, and for one seed."""

    @property
    def shown(self) -> str:
        """The verdict as text; it says where a difference is smaller than the margin, where the opposite holds, and where an
        interval excludes 0 that the corrected p does not."""
        interval = None if self.difference is None else self.difference.interval
        if interval is None:
            return str(self.verdict)
        small, excludes = _within(interval, self.claim.margin), not interval.low <= 0 <= interval.high
        corrected_away = excludes and _by_chance(self.adjusted_p)
        if self.verdict is Verdict.REPRODUCED:
            return f"{self.verdict} (small)" if small else str(self.verdict)
        if self.verdict is Verdict.NOT_REPRODUCED:
            words = f"small, {AFTER_CORRECTION}" if corrected_away else "the opposite" if excludes else "within the margin"
            return f"{self.verdict} ({words})"
        return AFTER_CORRECTION if corrected_away and self.verdict is Verdict.UNCLEAR else str(self.verdict)

    @property
    def judged(self) -> bool:
        """Whether there were runs to judge the claim by."""
        return self.difference is not None

    @property
    def decided(self) -> bool:
        """Whether the runs say yes or no."""
        return self.verdict in (Verdict.REPRODUCED, Verdict.NOT_REPRODUCED)

    @property
    def difference_text(self) -> str:
        """The difference in its metric's unit, e.g. `+4 % [-2, +10]`; of a claim of less it says how much lower the first arm is,
        e.g. `lower by 4 % [-2, 10]`; `-` where there is none."""
        if self.difference is None:
            return "-"
        higher = self.claim.higher
        text = metric_of(self.claim.metric, higher).show_difference(self.difference, self.claim.margin, signed=higher)
        return text if higher else f"lower by {text}"

    @property
    def detectable(self) -> float | None:
        """The smallest difference that as many seeds of this spread detect, whatever the family's other claims turn out to be;
        None for fewer than two, or for seeds without a spread, which say nothing about chance."""
        found = self.difference
        if found is None or found.deviation is None or found.seeds_p is None:
            return None
        return detectable(found.deviation, found.seeds, self.family)

    @property
    def detectable_text(self) -> str:
        """`detectable` in the metric's unit, rounded up, so that nothing undetectable is promised."""
        if self.detectable is None:
            return ""
        if is_share(self.claim.metric) and self.detectable > 1:
            return "none that a share can have"
        return metric_of(self.claim.metric).show(math.ceil(self.detectable * 100 - 1e-9) / 100)

    @property
    def seeds_text(self) -> str:
        """How many seeds of this spread detect a difference of the claim's margin; empty where nothing is known of the spread,
        and for a margin of 0, which no number of seeds detects."""
        if self.detectable is None or self.difference is None or self.difference.deviation is None:
            return ""
        if not self.claim.margin:
            return ""
        count = seeds_needed(self.difference.deviation, self.claim.margin, self.family)
        return f"more than {MOST_SEEDS}" if count is None else str(count)


def decide_claims(claims: Sequence[Claim], arms: Mapping[str, Sequence[RunRecord]]) -> tuple[DecidedClaim, ...]:
    """Give every claim its verdict. The claims come together, since their p are adjusted together. arms: runs by the name of
    their arm; an arm that is missing has none."""
    differences = [_difference(claim, arms) for claim in claims]
    p_values = [found.seeds_p for found in differences if found is not None and found.seeds_p is not None]
    adjusted = iter(holm(p_values))
    decided = []
    for claim, difference in zip(claims, differences, strict=True):
        p = next(adjusted) if difference is not None and difference.seeds_p is not None else None
        verdict, reason = verdict_of(difference, claim.margin, p)
        level = _level(claim, arms) if difference is not None and difference.seeds > 1 else None
        if level is not None:
            sides = "both windows" if claim.better == claim.worse else "both arms"
            reason = f"{sides} are at {metric_of(claim.metric).exact(level)} in every seed: nothing to tell apart"
        if difference is None and (own := _finished(claim, arms)):
            verdict, reason = Verdict.NOT_RECORDED, _unrecorded(claim, own)
        elif difference is None and _of_two_policies(claim, arms):
            reason = "runs of equal seed began from different policies"
        if is_reward(claim.metric) and not same_reward([*arms.get(claim.better, ()), *arms.get(claim.worse, ())]):
            verdict, reason = Verdict.NOT_COMPARABLE, "the arms are paid by different rewards"
        decided.append(DecidedClaim(claim, verdict, difference, p, reason, max(1, len(p_values)), level))
    return tuple(decided)


def _pairs(claim: Claim, arms: Mapping[str, Sequence[RunRecord]]) -> list[tuple[RunRecord, RunRecord]]:
    """The runs that a claim compares, the better arm's first."""
    return paired(arms.get(claim.better, ()), arms.get(claim.worse, ()))


def _level(claim: Claim, arms: Mapping[str, Sequence[RunRecord]]) -> float | None:
    """What all runs that are compared are at, each in its window; None where one is not."""
    windows, pairs = (claim.window, claim.worse_window or claim.window), _pairs(claim, arms)
    found = [value(run, claim.metric, window, claim.among) for pair in pairs for run, window in zip(pair, windows, strict=True)]
    known = [one for one in found if one is not None]
    return known[0] if known and all(math.isclose(one, known[0], rel_tol=1e-12, abs_tol=1e-12) for one in known) else None


def _finished(claim: Claim, arms: Mapping[str, Sequence[RunRecord]]) -> int:
    """The number of pairs of finished runs."""
    return sum(run.finished and other.finished for run, other in _pairs(claim, arms))


def _of_two_policies(claim: Claim, arms: Mapping[str, Sequence[RunRecord]]) -> bool:
    """Whether both arms have a seed, but from one policy none."""
    seeds = [{run.seed for run in arms.get(arm, ())} for arm in (claim.better, claim.worse)]
    return bool(seeds[0] & seeds[1]) and not _pairs(claim, arms)


def _unrecorded(claim: Claim, seeds: int) -> str:
    """Why finished runs have no difference: what a preset's problems or timing do not give, or a step that was not measured."""
    about = f" of the problems named {claim.among}" if claim.among else ""
    finished = "1 seed has" if seeds == 1 else f"{seeds} seeds have"
    return f"{finished} finished in both arms, without {claim.metric}{about} in the claim's window"


def _difference(claim: Claim, arms: Mapping[str, Sequence[RunRecord]]) -> Comparison | None:
    runs, others = arms.get(claim.better, ()), arms.get(claim.worse, ())
    if claim.higher:
        return compare_seeds(runs, others, claim.metric, claim.window, claim.worse_window, claim.among)
    return compare_seeds(others, runs, claim.metric, claim.worse_window or claim.window, claim.window, claim.among)


def verdict_of(difference: Comparison | None, margin: float, adjusted_p: float | None = None) -> tuple[Verdict, str]:
    """The verdict on a difference, and the reason; `RULE` says it in words. adjusted_p: None for a claim that stands alone."""
    if difference is None:
        return Verdict.NO_RUNS, "no seed has finished in both arms"
    interval = difference.interval
    if interval is None:
        return Verdict.UNCLEAR, "one seed has no interval"
    if difference.seeds_p is None:
        return Verdict.UNCLEAR, "all seeds differ by the same, which says nothing about chance"
    by_chance = _by_chance(adjusted_p)
    if by_chance and not interval.low <= 0 <= interval.high and not _within(interval, margin):
        return Verdict.UNCLEAR, f"the interval excludes 0, but one of so many claims does by chance: p {p_text(adjusted_p)}"
    if interval.low > 0 and not by_chance:
        small = f", within {margin:g} of it" if interval.high <= margin else ""
        return Verdict.REPRODUCED, f"the interval lies above 0{small}"
    if interval.high < 0 and not by_chance:
        return Verdict.NOT_REPRODUCED, "the interval lies below 0: the opposite holds"
    if _within(interval, margin):
        return Verdict.NOT_REPRODUCED, f"the interval lies within {margin:g} of 0: no difference of that size"
    return Verdict.UNCLEAR, "the interval includes 0"


def _by_chance(adjusted_p: float | None) -> bool:
    """Whether one of so many claims has such a p by chance."""
    return adjusted_p is not None and adjusted_p > 1 - LEVEL


def _within(interval: Interval, margin: float) -> bool:
    return -margin <= interval.low and interval.high <= margin
