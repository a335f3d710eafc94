"""The table of an experiment's page that says what each run has in the window of each claim, so that a difference can be
recounted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rlkernel.report.claims import Claim, DecidedClaim
from rlkernel.report.columns import metric_of
from rlkernel.report.summary import RunRecord, paired, value


def seeds_lines(judged: Sequence[DecidedClaim], arms: Mapping[str, Sequence[RunRecord]]) -> list[str]:
    """The section; nothing where no claim has runs. arms: runs by the name of their arm."""
    claims = [one.claim for one in judged if one.difference is not None]
    if not claims:
        return []
    seeds = sorted({run.seed for claim in claims for run in arms[claim.better]})
    lines = [
        "",
        "## Seed by seed",
        "",
        "What each run has in the claim's window: the second arm of the claim, then the first.",
        "",
        f"| claim | {' | '.join(f'seed {seed}' for seed in seeds)} |",
        "|---" * (1 + len(seeds)) + "|",
    ]
    return [*lines, *(f"| {_told(claim)} | {' | '.join(_pair(claim, arms, seed) for seed in seeds)} |" for claim in claims)]


def _told(claim: Claim) -> str:
    """The claim and the problems that it is about, where these are not all."""
    return claim.told + (f" (problems named `{claim.among}`)" if claim.among else "")


def _pair(claim: Claim, arms: Mapping[str, Sequence[RunRecord]], seed: int) -> str:
    """What the two runs of a seed have; `-` where no two are compared."""
    metric = metric_of(claim.metric, claim.higher)
    windows = claim.worse_window or claim.window, claim.window
    pairs = [pair for pair in paired(arms.get(claim.worse, ()), arms.get(claim.better, ())) if pair[0].seed == seed]
    found = [value(run, claim.metric, window, claim.among) for pair in pairs for run, window in zip(pair, windows, strict=True)]
    known = [one for one in found if one is not None]
    return " → ".join(metric.show(one, more=1) for one in known) if len(known) == len(windows) else "-"
