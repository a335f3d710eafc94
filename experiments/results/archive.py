"""Moves results that are about to be followed by others into a folder with their date, where their pages and numbers stay."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments import checked_in
from experiments.results.run_pages import FOLDER, copy_run_pages
from rlkernel.errors import UsageError

PAGES = ("README.md", "holds.png", "fails.png", "open.png", "kernels.md", "cold_start.md", FOLDER)
"""What `experiments.results` writes beside the folders of experiments."""
DATE = re.compile(r"\d{4}-\d\d-\d\d")
HEADING = re.compile(r"^# (.+)$", re.MULTILINE)
SENTENCE = re.compile(r"^\d+ .*?\.(?=\s|$)", re.MULTILINE)
"""The first sentence of a line that begins with a number."""
FIGURE = re.compile(r"^!\[[^\]]*\]\(([^)]+)\)", re.MULTILINE)


def earlier(out: Path) -> list[str]:
    """The dates of the folders of earlier results, the newest first."""
    found = (page.parent.name for page in out.glob("*/README.md"))
    return sorted((name for name in found if DATE.fullmatch(name)), reverse=True)


@dataclass(frozen=True)
class Neighbour:
    """A page beside the page of results, with what that page itself says first in numbers."""

    title: str
    place: str
    """The path of the page, from the page of results."""
    sentence: str
    """The first sentence of the page that begins with a number; empty where none does."""
    figure: str
    """The path of the page's first figure, from the page of results; empty where it has none."""


def neighbours(out: Path) -> list[Neighbour]:
    """The pages in the folder: earlier results, the newest first, and then all others by name."""
    dated = [_neighbour(out, out / date / "README.md", f"Results of {date}") for date in earlier(out)]
    return dated + [_neighbour(out, page) for page in sorted(out.glob("*.md")) if page.name not in PAGES]


def _neighbour(out: Path, page: Path, title: str = "") -> Neighbour:
    text = page.read_text(encoding="utf-8")
    heading, sentence, figure = HEADING.search(text), SENTENCE.search(text), FIGURE.search(text)
    place = page.relative_to(out)
    return Neighbour(
        title or (heading[1] if heading else place.stem),
        place.as_posix(),
        sentence[0] if sentence else "",
        (place.parent / figure[1]).as_posix() if figure else "",
    )


def links(out: Path) -> list[str]:
    """The lines of the page of results that link the pages beside it."""
    rows = [f"- [{one.title}]({one.place})" + (f": {one.sentence}" if one.sentence else "") for one in neighbours(out)]
    return ["Beside this page; earlier results are judged by the claims of their time:", "", *rows, ""] if rows else []


def index(out: Path) -> str:
    """The page of a folder that has no results of today's claims: each page in it with a sentence and a figure of its own."""
    lines = [
        "# Results",
        "",
        "Each page below, with its first sentence in numbers and its first figure. All pages say which command wrote them.",
        "",
    ]
    for one in neighbours(out):
        lines += [f"## [{one.title}]({one.place})", ""]
        lines += [one.sentence, ""] if one.sentence else []
        lines += [f"[![{one.title}]({one.figure})]({one.place})", ""] if one.figure else []
    lines += [
        "## What is claimed today",
        "",
        "No runs yet of the [claims](../claims.md) as they stand today. Earlier results are judged by the claims of their time. "
        "[The log](../log.md) has smaller measurements by date.",
    ]
    return "\n".join(lines) + "\n"


def archive(out: Path, names: Sequence[str], *, whole: bool = True) -> Path:
    """Move the results of a folder into one that is named after the day of their last run. Returns the new folder.

    names: experiments. whole: whether the pages beside them go with them and `index` is written in their place; otherwise they
    stay, and the pages of the runs, which other experiments may share, are copied. Raises UsageError where there is nothing to
    move, or the folder exists; but experiments that it has not join it without their pages."""
    own = checked_in.among(names, out)
    if not own:
        raise UsageError(f"--archive {out}: no folder of an experiment with numbers.json and manifests.json is in it")
    manifests = [one for name in own for one in json.loads((out / name / checked_in.MANIFESTS).read_text(encoding="utf-8"))]
    place = out / max(str(one["finished"]) for one in manifests)[:10]
    taken = [name for name in own if (place / name).exists()]
    if place.exists() and (whole or taken):
        way = "move what is in it away first" if taken else "add experiments to it with --only"
        raise UsageError(f"{place} exists: {way}")
    place.mkdir(exist_ok=True)
    if not whole:
        copy_run_pages([out / name for name in own], out, place)
    for name in (*own, *(page for page in PAGES if whole and (out / page).exists())):
        (out / name).rename(place / name)
    if whole:
        (out / "README.md").write_text(index(out), encoding="utf-8")
    return place
