"""Write pages from finished runs, as `docs/results` holds them: what the papers claim beside what was measured, verdicts by rule.

    python -m experiments.results [--runs runs] [--out runs/results]

    <out>/README.md             all claims with verdicts, and how to read them
    <out>/kernels.md            the ten best kernels of the best run
    <out>/cold_start.md         what the policy did before training, if <runs>/policy is there
    <out>/<experiment>/         README.md, figure.png, numbers.json (every measurement, verdicts), manifests.json (what ran)
    <out>/runs/                 a page per run: its validations, and trajectories of the last one

    python -m experiments.results --runs runs/later --out docs/results --add    # add runs to those whose numbers are there
    python -m experiments.results --again docs/results/2026-11-21     # the same anew, from the measurements that are checked in
    python -m experiments.results --archive docs/results              # move them to a folder with their date, before others come
    python -m experiments.results --archive docs/results --only transfer    # one of them; the others stay, and so it is with runs

Runs of one scale are compared, never of two: measured time before modelled, then the scale with the most runs. Runs whose sizes
are those of no preset are refused, unless `--any-scale` is given, and then the pages say so. All of this is generated. A file
`findings.md` in the folder of an experiment is not: it says what somebody saw in these runs, it is never overwritten, the page
beside it links to it, and the page of all claims quotes the first sentence of it that begins a paragraph in bold.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from PIL import Image

from experiments import checked_in, sequential_scaling
from experiments.catalogue import NAMES, load
from experiments.results import transcripts
from experiments.results.adding import added
from experiments.results.archive import archive, earlier, index, links
from experiments.results.collecting import collect
from experiments.results.figure import distinct, draw_verdicts
from experiments.results.findings import read_headline
from experiments.results.numbers import write_numbers, write_verdicts
from experiments.results.pages import Found, overview, page
from experiments.results.pages_beside import cold_start_page, kernels_page
from experiments.results.run_pages import pages_in, write_run_pages
from experiments.results.transcripts import REFINED
from rlkernel.commands.flags import parse_flags
from rlkernel.errors import UsageError, exit_status
from rlkernel.report.best_kernels import best_kernels, best_run
from rlkernel.report.figure import draw_curves
from rlkernel.report.report import Story
from rlkernel.report.summary import RunRecord, is_finished

WITH_PAGES = (*NAMES, REFINED)
"""The experiments that have pages."""


@dataclass(frozen=True)
class Flags:
    """Write pages from finished runs: what the papers claim beside what was measured."""

    runs: Path = Path("runs")
    """The directory in which the experiments wrote: their `--out`."""
    out: Path | None = None
    """Directory of the pages; without it, `results` beside the runs."""
    again: Path | None = None
    """Write the pages and figures of this directory anew, from the numbers and by the claims that it holds, and read no runs."""
    archive: Path | None = None
    """Move the results in this directory into a folder inside it that is named after the day of their last run, and read no
    runs."""
    only: tuple[str, ...] = ()
    """The experiments to write, or to move; what the directory has of others stays. Without it, all."""
    add: bool = False
    """Add the runs to those that the pages' directory keeps as numbers; experiments without new runs stay as they are."""
    any_scale: bool = False
    """Also write pages of runs whose sizes no preset has."""


def main(argv: Sequence[str]) -> int:
    """The command. Exit status 0, or 2 after one line when there is no finished run."""
    return exit_status(lambda: _main(parse_flags(Flags(), list(argv), "python -m experiments.results")))


def _main(flags: Flags) -> int:
    if stranger := next((name for name in flags.only if name not in WITH_PAGES), None):
        raise UsageError(f"--only {stranger}: choose from {', '.join(WITH_PAGES)}")
    for flag, folder in (("--again", flags.again), ("--archive", flags.archive), ("--runs", flags.runs)):
        if folder is not None and folder != Flags.runs and not folder.is_dir():
            raise UsageError(f"{flag} {folder}: no such directory")
    if flags.again is not None:
        if flags.only:
            raise UsageError("--only is for runs and for --archive: --again writes all that the directory has")
        return _again(flags.again)
    asked = flags.only or WITH_PAGES
    if flags.archive is not None:
        return _archive(flags.archive, asked)
    return _from_runs(flags, asked)


def _from_runs(flags: Flags, asked: Sequence[str]) -> int:
    """Write pages of these experiments from directories of runs."""
    out = flags.out or flags.runs / "results"
    pieces = [one for one in collect(flags.runs) if one.name in asked]
    every, there_already = pieces, False
    if flags.add:
        joined = [added(one, out / one.name) for one in pieces if one.runs]
        every, there_already = [one for one in joined if one is not None], None in joined
    # An experiment of which a shared arm alone was run has nothing to compare.
    found = [one for one in every if any(judged.difference is not None for judged in one.judged)]
    if not found and there_already:
        return write_pages(checked_in.among(WITH_PAGES, out), out)
    if not found:
        raise UsageError(f"{_nothing_compared(flags.runs, every, flags.any_scale)}: run `python -m experiments.all` first")
    if not flags.any_scale and (strange := next((one for one in found if not one.preset), None)):
        raise UsageError(f"the runs of {strange.name} have sizes that no preset has: give --any-scale to write pages of them")
    new = {one.name: one.runs for one in pieces}  # whose directories are there
    for one in found:
        write_numbers(one, out / one.name)
        if flags.add:
            write_verdicts(one, out / one.name)  # of the claims of then, too
        if not (flags.add and transcripts.read(out / one.name)):
            transcripts.write(transcripts.choose(new[one.name]), out / one.name)
    everyone = [run for one in found if one.name != REFINED for run in new[one.name]]
    write_run_pages(everyone, out)
    if flags.only or flags.add:
        return write_pages(checked_in.among(WITH_PAGES, out), out)
    _write_pages_of_all(flags.runs, everyone, out)
    return write_pages([one.name for one in found], out)


def _write_pages_of_all(runs: Path, everyone: Sequence[RunRecord], out: Path) -> None:
    """Write the pages that are about all runs: the best kernels, and what the policy did before training, where that is known."""
    best = best_run(everyone)
    kernels = best_kernels(best) if best is not None else ()
    (out / "kernels.md").write_text(kernels_page(best, kernels), encoding="utf-8")
    behaviour = runs / "policy" / "behaviour.json"
    if behaviour.is_file():
        facts = json.loads(behaviour.read_text(encoding="utf-8"))
        (out / "cold_start.md").write_text(cold_start_page(facts), encoding="utf-8")


def _archive(out: Path, asked: Sequence[str]) -> int:
    """Move what is asked for. What is moved alone gets a first page of its own, and so does what stays."""
    place = archive(out, asked, whole=asked == WITH_PAGES)
    print(f"moved to {place}")
    if asked != WITH_PAGES:
        write_pages(checked_in.among(WITH_PAGES, place), place)  # others of that day may be there
        _again(out)
    return 0


def _nothing_compared(runs: Path, every: Sequence[Found], any_scale: bool) -> str:
    """What was found where no experiment has two arms to compare, and why it does not count."""
    directories = [path.parent for place in ("arms", "refined") for path in (runs / place).glob("*/manifest.json")]
    if not directories:
        return f"{runs} has no finished runs that an experiment compares"
    finished = [directory for directory in directories if is_finished(directory)]
    alone = {run.directory for one in every for run in one.runs}
    strange = {run.directory for one in every for run in one.runs if not one.preset}
    reasons = {
        "not finished": len(directories) - len(finished),
        "of an arm that no experiment has today, or of sizes that others outnumber": len(finished) - len(alone),
        "without another arm of the same seed and sizes, or without the problems that a claim is about": len(alone),
        "of these of sizes that no preset has" + ("" if any_scale else ", which need --any-scale"): len(strange),
    }
    told = ", ".join(f"{count} {reason}" for reason, count in reasons.items() if count)
    count = f"{len(directories)} run" + ("s" if len(directories) > 1 else "")
    return f"{runs} has {count}, none of which an experiment compares ({told})"


def _again(out: Path) -> int:
    """Write what can be made of the numbers in `out`."""
    names = checked_in.among(WITH_PAGES, out)
    if not names and earlier(out):
        (out / "README.md").write_text(index(out), encoding="utf-8")
        return 0
    if not names:
        raise UsageError(f"--again {out}: no folder of an experiment with numbers.json and manifests.json is in it")
    return write_pages(names, out)


def write_pages(names: Sequence[str], out: Path) -> int:
    """Write verdicts, pages and figures of these experiments from the numbers in `out`, and from nothing else; then the page that
    puts the claims together with its figures. Print how many claims have which verdict."""
    stories = {**{name: load(name).story for name in NAMES}, REFINED: sequential_scaling.STORY}
    found = [_kept(name, stories[name], checked_in.read(out / name)) for name in names]
    for one in found:
        write_verdicts(one, out / one.name)
        write_page(one, out / one.name)
    draw_verdicts([judged for one in found for judged in one.judged], out)
    pages = {name: (out / f"{name}.md").is_file() for name in ("kernels", "cold_start")}
    read = {one.name: read_headline(out / one.name) for one in found}
    seen = {name: headline for name, headline in read.items() if headline is not None}
    about = overview(found, **pages, seen=seen, others=links(out))
    (out / "README.md").write_text(about, encoding="utf-8")
    counts = Counter(str(judged.verdict) for judged in distinct([judged for one in found for judged in one.judged]))
    print(f"{out / 'README.md'}: {', '.join(f'{count} {verdict}' for verdict, count in sorted(counts.items()))}")
    return 0


def _kept(name: str, story: Story, kept: checked_in.Kept) -> Found:
    """An experiment as its folder keeps it: with the words and the claims of then."""
    own = replace(story, docstring=kept.docstring, claims=story.claims if kept.claims is None else kept.claims)
    return Found(name, own, kept.runs, kept.preset, kept.bands)


def write_page(one: Found, directory: Path) -> None:
    """Write the page and the figure of an experiment."""
    figure = directory / "figure.png"
    about = f"a miniature, preset {one.preset}" if one.preset else "a miniature, sizes of no preset"
    draw_curves(one.runs, figure, one.story.panels, one.story.axis, about)
    with Image.open(figure) as drawn:  # a repository keeps every version
        drawn.quantize(64).save(figure, optimize=True)
    chosen = transcripts.read(directory)
    text = page(
        one, findings=read_headline(directory), transcripts=transcripts.links(chosen), run_pages=pages_in(directory.parent)
    )
    (directory / "README.md").write_text(text, encoding="utf-8")
    if chosen:
        written = transcripts.transcripts_page(one.story.title, chosen)
        (directory / "transcripts.md").write_text(written, encoding="utf-8")
