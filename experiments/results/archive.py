"""Moves results that are about to be followed by others into a folder with their date, where their pages and numbers stay."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from experiments import checked_in
from rlkernel.errors import UsageError

PAGES = ("README.md", "holds.png", "fails.png", "open.png", "kernels.md", "cold_start.md")
"""What `experiments.results` writes beside the folders of experiments."""
DATE = re.compile(r"\d{4}-\d\d-\d\d")


def earlier(out: Path) -> list[str]:
    """The dates of the folders of earlier results, the newest first."""
    found = (page.parent.name for page in out.glob("*/README.md"))
    return sorted((name for name in found if DATE.fullmatch(name)), reverse=True)


def links(out: Path) -> list[str]:
    """The lines that link what else is in the folder: the page about the world, and earlier results."""
    world = ["How hard the world's problems are: [the world, measured](world.md).", ""] if (out / "world.md").is_file() else []
    dates = ", ".join(f"[{date}]({date}/README.md)" for date in earlier(out))
    return world + ([f"Earlier results, judged by the claims of their time: {dates}.", ""] if dates else [])


def index(out: Path) -> str:
    """The page of a folder that has earlier results alone."""
    about = "No runs yet of what is claimed today ([claims](../claims.md))."
    return "\n".join(["# Results", "", about, "", *links(out)]).rstrip("\n") + "\n"


def archive(out: Path, names: Sequence[str]) -> Path:
    """Move the results of a folder into one that is named after the day of their last run, and write `index` in their place.
    Returns the new folder. names: experiments. Raises UsageError where there is nothing to move, or the new folder exists."""
    own = [name for name in names if checked_in.is_checked_in(out / name)]
    if not own:
        raise UsageError(f"--archive {out}: no folder of an experiment with numbers.json and manifests.json is in it")
    manifests = [one for name in own for one in json.loads((out / name / checked_in.MANIFESTS).read_text(encoding="utf-8"))]
    place = out / max(str(one["finished"]) for one in manifests)[:10]
    if place.exists():
        raise UsageError(f"{place} exists: move what is in it away first")
    place.mkdir()
    for name in (*own, *(page for page in PAGES if (out / page).exists())):
        (out / name).rename(place / name)
    (out / "README.md").write_text(index(out), encoding="utf-8")
    return place
