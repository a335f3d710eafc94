"""Says what runs amount to in one line, from the rule of `rlkernel.report.claims` alone."""

from __future__ import annotations

from collections.abc import Sequence

from rlkernel.report.claims import DecidedClaim, Verdict, verdict_of
from rlkernel.report.columns import METRICS, Metric, metric_of
from rlkernel.report.summary import ArmSummary
from rlkernel.statistics import Comparison, p_text

METRIC_NAMES = {"fast_1": "Fast@1", "fast_1.2": "Fast@1.2", "hacking_rate": "hacking", "lazy_rate": "lazy kernels"}
"""How a line of prose calls a metric, where it is not by the key with spaces."""


def finding(decided: Sequence[DecidedClaim], arms: Sequence[ArmSummary]) -> str:
    """The report's first line. It is about the first claim that the runs decide; where they decide none, about the first that
    they were judged by; without such a claim, about the last arm and the first one."""
    judged = [found for found in decided if found.judged]
    if not judged:
        return _without_claims(arms)
    lead = next((found for found in judged if found.decided), judged[0])
    count = sum(found.decided for found in judged)
    others = f" {count} of {len(judged)} claims are decided." if len(judged) > 1 else ""
    return f"{claim_line(lead)}.{others}"


def claim_line(found: DecidedClaim) -> str:
    """A judged claim in one sentence without its full stop, such as `trloo against grpo in reward: not decided by 2 seeds
    (difference -0.01, interval -0.26 to +0.23); 6 seeds would detect 0.05`. Raises ValueError for a claim without runs."""
    if found.difference is None:
        raise ValueError(f"the claim {found.claim.text!r} has no runs")
    claim, metric = found.claim, metric_of(found.claim.metric)
    contrast = f"{claim.better} against {claim.worse}"
    if claim.better == claim.worse:
        contrast = f"{claim.better}, late against early" if claim.worse_window else claim.better
    if found.level is not None:
        return f"{contrast} in {name_of(claim.metric)}: not decided by {found.difference.seeds} seeds, as {found.reason}"
    numbers = _numbers(metric, found.difference, 1 if claim.higher else -1, claim.margin)
    return f"{contrast} in {name_of(claim.metric)}: {_said(found, metric)} by {numbers}{_design(found, metric)}"


def _said(found: DecidedClaim, metric: Metric) -> str:
    """The verdict in words that say what was seen."""
    claim, interval = found.claim, found.difference.interval if found.difference else None
    above, below = ("higher", "lower") if claim.higher else ("lower", "higher")
    if found.verdict is Verdict.REPRODUCED:
        small = interval is not None and interval.high <= claim.margin
        return f"{above} as claimed, if by less than {metric.show(claim.margin)}," if small else f"{above} as claimed,"
    if found.verdict is Verdict.NOT_REPRODUCED and interval is not None:
        return f"{below}, against the claim," if interval.high < 0 else f"no difference of {metric.show(claim.margin)}, shown"
    return "not decided"


def _numbers(metric: Metric, difference: Comparison, sign: int = 1, margin: float = 0.0) -> str:
    """How many seeds say what, as the difference of the first arm minus the second; with sign -1 the difference is the other way
    round. margin: see `Metric.more`."""
    seeds = f"{difference.seeds} seed{'s' if difference.seeds != 1 else ''}"
    more = metric.more(difference, margin)
    text = f"difference {metric.show(sign * difference.mean + 0.0, signed=True, more=more)}"
    if difference.interval is not None:
        bounds = sorted(sign * bound for bound in (difference.interval.low, difference.interval.high))
        low, high = (metric.show(value, signed=True, more=more) for value in bounds)
        text += f", interval {low.removesuffix(' %')} to {high}"
    return f"{seeds} ({text})"


def _design(found: DecidedClaim, metric: Metric) -> str:
    """What more seeds would do for a claim that is not decided; empty for one that is."""
    if found.decided:
        return ""
    interval = found.difference.interval if found.difference else None
    if interval is not None and not interval.low <= 0 <= interval.high:
        return f"; corrected for the claims beside it, p is {p_text(found.adjusted_p)}"
    if found.detectable is None:
        return "; at least 2 seeds with a spread are needed"
    if not found.seeds_text:
        return ""
    return f"; {found.seeds_text} seeds would detect {metric.show(found.claim.margin)}"


def name_of(key: str) -> str:
    """A metric as prose calls it.

    >>> name_of("hacking_rate"), name_of("fast_1.2_turn_1"), name_of("train/grad_norm")
    ('hacking', 'Fast@1.2 turn 1', 'grad norm in training')
    """
    train, name = key.startswith("train/"), key.removeprefix("train/")
    text = METRIC_NAMES.get(name) or name.replace("fast_", "Fast@").replace("_", " ")
    return f"{text} in training" if train else text


def _without_claims(arms: Sequence[ArmSummary]) -> str:
    last, metric = arms[-1], METRICS[0]
    if last.difference is None:
        if len(arms) > 1:
            return f"{last.arm} and {arms[0].arm} share no seed: nothing to compare."
        first, now = last.first[metric.key], last.last[metric.key]
        return f"{last.arm} alone: validation reward {first.show(metric)} to {now.show(metric)}; no other arm to compare with."
    if metric.key not in last.difference:
        metric = metric_of("fast_1.2")
    found = last.difference[metric.key]
    verdict, _ = verdict_of(found, margin=0.0)
    words = {Verdict.REPRODUCED: "higher,", Verdict.NOT_REPRODUCED: "lower,"}
    said = words.get(verdict, "not decided")
    return f"{last.arm} against {arms[0].arm} in {name_of(metric.key)}: {said} by {_numbers(metric, found)}."
