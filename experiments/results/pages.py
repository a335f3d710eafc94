"""The pages of `docs/results` in Markdown, from runs that were read and judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from experiments.arms import MINIATURE, PRESETS
from experiments.catalogue import NAMES
from experiments.results.cost import cost_lines
from experiments.results.figure import GROUPS, distinct, strongest_first
from experiments.results.findings import FINDINGS
from experiments.results.seeds import seeds_lines
from experiments.results.transcripts import places
from rlkernel.report.claims import LATE, RULE, UNJUDGED, DecidedClaim, Verdict, decide_claims
from rlkernel.report.findings import claim_line
from rlkernel.report.report import Story
from rlkernel.report.summary import ArmSummary, RunRecord, by_arm, columns_of, common_timing, summarise
from rlkernel.runs.outcomes import COVERAGES
from rlkernel.statistics import p_text

BANDS = ((0.0, 0.3), (0.3, 0.7), (0.7, 1.01))
"""The bands of coverage that are counted; below the first inner bound a kernel is lazy."""


TITLES = {
    Verdict.REPRODUCED: "What holds",
    Verdict.NOT_REPRODUCED: "What does not",
    Verdict.UNCLEAR: "What could not be decided",
}


@dataclass(frozen=True)
class Found:
    """An experiment and its runs, in the order of its arms."""

    name: str
    story: Story
    runs: tuple[RunRecord, ...]
    preset: str
    """The preset whose sizes the runs have; empty where no preset has them."""
    bands: Mapping[str, Sequence[int]]
    """Arm -> how many correct turns, late in its runs, are in each of `BANDS`; without arms that recorded no outcomes."""

    @cached_property
    def judged(self) -> tuple[DecidedClaim, ...]:
        return decide_claims(self.story.claims, by_arm(self.runs))


def page(
    one: Found, *, findings: str | None = None, transcripts: Sequence[str] = (), run_pages: Collection[str] = ()
) -> str:  # fmt: skip
    """One experiment in Markdown. findings: the headline of `findings.md`, written by hand, where it is beside the page.
    transcripts: the lines that lead to its transcripts. run_pages: the names of the runs that have a page of their own."""
    arms = summarise(one.runs)
    timing = common_timing(one.runs)
    seeds = sorted({run.seed for run in one.runs})
    cards = sorted({card for run in one.runs for card in run.manifest["machine"]["gpus"]}) or ["no GPU"]
    lines = [f"# {one.story.title}", "", *_paragraphs(one.story.docstring)]
    lines += [
        f"{len(one.runs)} runs, seeds {', '.join(map(str, seeds))}, {scale(one)}, **{timing}** time, {', '.join(cards)}. "
        "Raw numbers: `numbers.json`; what ran: `manifests.json`; both make this page again (`python -m experiments.results "
        "--again`).",
        "",
        *cost_lines(one.runs),
        *seen_lines(findings, FINDINGS),
        "![Validation curves](figure.png)",
        "",
        "## Verdicts",
        "",
        *claims_table(one.judged),
        "",
        RULE,
        "",
        *(f"- **{judged.claim.told}**: {sentence(judged)}" for judged in one.judged),
        "",
        f"## Arms, first to last {one.story.axis} measured",
        "",
        *arms_table(arms),
        *seeds_lines(one.judged, by_arm(one.runs)),
    ]
    return "\n".join([*lines, *_bands(one), *transcripts, *places(one.name, one.runs, one.preset, run_pages)]) + "\n"


def scale(one: Found) -> str:
    """
    >>> scale(Found("x", Story("", "", (), ()), (), "", {}))
    'of **sizes of no preset**'
    """
    return f"preset `{one.preset}` (a miniature: {PRESETS[one.preset].about})" if one.preset else "of **sizes of no preset**"


def _paragraphs(docstring: str) -> list[str]:
    return [part for paragraph in docstring.split("\n\n") for part in (" ".join(paragraph.split()), "")]


def claims_table(judged: Sequence[DecidedClaim]) -> list[str]:
    lines = ["| claim | metric | difference [95 % interval] | adjusted p | verdict | the paper |", "|---|---|---|---|---|---|"]
    for found in judged:
        claim = found.claim
        arms, p = f"`{claim.better}` against `{claim.worse}`", p_text(found.adjusted_p)
        verdict = f"**{found.shown}**" + ("" if found.level is None else f": {found.reason}")
        cells = (f"{claim.told} ({arms})", f"`{claim.metric}`", found.difference_text, p, verdict, claim.paper)
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def sentence(judged: DecidedClaim) -> str:
    """One sentence: what the rule made of the numbers, and what the paper says."""
    difference = judged.difference
    if difference is None:
        return f"{judged.verdict}; {judged.reason}."
    seeds = "1 seed" if difference.seeds == 1 else f"{difference.seeds} seeds"
    text = f"{judged.shown}: {judged.reason} ({judged.difference_text} over {seeds}"
    if difference.bootstrap is not None and difference.problems is not None:
        low, high = difference.bootstrap.low, difference.bootstrap.high
        text += f"; drawing seeds and {difference.problems} problems again, [{low:+.3f}, {high:+.3f}]"
    return f"{text}). The paper: {judged.claim.paper}."


def arms_table(arms: Sequence[ArmSummary]) -> list[str]:
    columns = columns_of(arms)
    lines = [f"| arm | seeds | {' | '.join(metric.label for metric in columns)} |", "|---" * (2 + len(columns)) + "|"]
    for arm in arms:
        cells = [f"{arm.first[m.key].show(m).split(' ±')[0]} → {arm.last[m.key].show(m)}" for m in columns]
        lines.append(f"| `{arm.arm}` | {len(arm.seeds)} | {' | '.join(cells)} |")
    return lines


def bands_of(runs: Sequence[RunRecord]) -> dict[str, list[int]]:
    """Count the correct turns late in runs by their coverage, as `Found.bands` has it."""
    counted = {}
    for arm, members in by_arm(runs).items():
        found = [
            c
            for run in members
            for step in (LATE.choose(sorted(run.outcomes)) if run.outcomes else ())
            for problem in run.outcomes[step].values()
            for c in problem.get(COVERAGES, ())
        ]
        if found:
            counted[arm] = [sum(low <= c < high for c in found) for low, high in BANDS]
    return counted


def _bands(one: Found) -> list[str]:
    """The table of the coverage of correct turns late in the runs, where outcomes were recorded."""
    if not one.bands:
        return []
    rows = [
        f"| `{arm}` | {sum(counts)} | {' | '.join(f'{100 * count / sum(counts):.0f} %' for count in counts)} |"
        for arm, counts in one.bands.items()
    ]
    head = " | ".join(f"{low:g} to {min(high, 1):g}" for low, high in BANDS)
    return [
        "",
        "## Coverage of correct turns, late half",
        "",
        f"| arm | turns | {head} |",
        "|---" * (2 + len(BANDS)) + "|",
        *rows,
    ]


def _presets(names: Sequence[str]) -> str:
    """
    >>> _presets([]), _presets(["world"]), _presets(["cpu", "world"])
    ('no preset', 'the preset `world`', 'the presets `cpu` and `world`')
    """
    told = " and ".join(f"`{name}`" for name in names)
    return f"the preset{'s' * (len(names) > 1)} {told}" if names else "no preset"


def _counts(judged: Sequence[DecidedClaim]) -> str:
    """How many claims have each verdict."""
    counts = Counter(one.verdict for one in judged)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])


def overview(
    found: Sequence[Found], *, kernels: bool, cold_start: bool, seen: Mapping[str, str], others: Sequence[str] = ()
) -> str:
    """The page that puts the claims together: what holds, what does not and what is open, then all of them by experiment.
    kernels, cold_start: whether these pages are there. seen: experiment -> the headline of its `findings.md`, for those that have
    one. others: the lines that link what else is in the folder."""
    judged = [verdict for one in found for verdict in one.judged]
    counted = [one for one in distinct(judged) if one.verdict not in UNJUDGED]
    papers = [one for one in counted if one.claim.of_a_paper]
    missing = [name for name in (*NAMES, "sequential_scaling") if name not in {one.name for one in found}]
    timings = sorted({common_timing(one.runs) for one in found})
    presets = sorted({one.preset for one in found if one.preset})
    lines = [
        "# Results",
        "",
        "The papers' claims (Dr. Kernel, arXiv 2602.05885; TritonRL, arXiv 2510.17891) with a small policy trained from scratch: "
        f"the scale is a miniature, the mechanisms are the real ones. All times are **{' and '.join(timings)}**. The runs are of "
        f"{_presets(presets)}. Generated by "
        "`python -m experiments.results` from finished runs.",
        "",
        f"{_counts(counted)}, of {len(counted)} different claims that runs of a miniature speak of. "
        f"The papers make {len(papers)} of these{f': {_counts(papers)}' if papers else ''}; the others are our own questions."
        + (f" Without finished runs: {', '.join(missing)}." if missing else ""),
        "",
        *others,
    ]
    for verdict, title in TITLES.items():
        lines += _group(title, found, strongest_first(judged, verdict), GROUPS[verdict][0], seen)
    lines += [
        "## How it is decided",
        "",
        RULE,
        "",
        *(
            ["**What to keep in mind:**", "", *(f"- {sentence}" for sentence in MINIATURE), ""]
            if "h200" in {one.preset for one in found}
            else []
        ),
        ("The best kernels of the best run: [kernels.md](kernels.md)." if kernels else "")
        + (" What the policy did before training: [cold_start.md](cold_start.md)." if cold_start else ""),
    ]
    for one in found:
        lines += [
            "",
            f"## [{one.story.title}]({one.name}/README.md)",
            "",
            *seen_lines(seen.get(one.name), f"{one.name}/{FINDINGS}"),
        ]
        lines += claims_table(one.judged)
    return "\n".join(lines) + "\n"


def seen_lines(headline: str | None, place: str) -> list[str]:
    """The line that stands before the verdicts on an experiment where somebody wrote what was seen in its runs, which may take a
    verdict back. headline: that of the text, None where nobody wrote one; place: its path.

    >>> seen_lines("It is noise.", "a.md"), seen_lines("", "a.md"), seen_lines(None, "a.md")
    (['[What was seen in these runs](a.md): **It is noise.**', ''], ['[What was seen in these runs](a.md).', ''], [])
    """
    if headline is None:
        return []
    return [f"[What was seen in these runs]({place})" + (f": **{headline}**" if headline else "."), ""]


def _group(
    title: str, found: Sequence[Found], claims: Sequence[DecidedClaim], figure: str, seen: Collection[str]
) -> list[str]:  # fmt: skip
    """What stands under one of `TITLES`: the clearest claim in a sentence, with the page that has its runs, and the figure. One
    that was made after a look at runs, or that holds by definition, comes first only where all do."""
    if not claims:
        return []
    first = next((one for one in claims if not (one.claim.after_look or one.claim.certain)), claims[0])
    place = next(one for one in found if first in one.judged)
    findings = f", [what was seen in them]({place.name}/{FINDINGS})" if place.name in seen else ""
    sentence = f"{first.claim.told}: {claim_line(first)} ([its runs]({place.name}/README.md){findings})."
    count = "One claim." if len(claims) == 1 else f"{len(claims)} claims. The clearest:"
    return [f"## {title}", "", f"{count} {sentence}", "", f"![{title}]({figure})", ""]
