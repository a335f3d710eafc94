"""Read runs from what `docs/results` keeps of them: `numbers.json` and `manifests.json` of an experiment's folder.

So every page and figure can be made again from checked-in numbers, by anybody, without a GPU.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlkernel.errors import UsageError
from rlkernel.report.claims import Claim
from rlkernel.report.summary import RunRecord, Window

NUMBERS, MANIFESTS = "numbers.json", "manifests.json"


def is_checked_in(directory: Path) -> bool:
    """Whether a folder has what `read` reads."""
    return (directory / NUMBERS).is_file() and (directory / MANIFESTS).is_file()


def among(names: Sequence[str], out: Path) -> list[str]:
    """The experiments of these names that a folder of results keeps."""
    return [name for name in names if is_checked_in(out / name)]


@dataclass(frozen=True)
class Kept:
    """What an experiment's folder keeps. Values have the five decimals of the file."""

    runs: tuple[RunRecord, ...]
    preset: str
    """The preset whose sizes the runs have; empty where no preset has them."""
    bands: Mapping[str, Sequence[int]]
    """The counts of the runs' coverages by arm."""
    docstring: str
    """What the experiment said of itself when the runs were collected."""
    claims: tuple[Claim, ...] | None
    """The claims by which the runs were judged; None before they were."""


def read(directory: Path) -> Kept:
    """Read an experiment's folder. Raises UsageError, which names the file."""
    try:
        numbers = json.loads((directory / NUMBERS).read_text(encoding="utf-8"))
        manifests = {(one["arm"], one["seed"]): one for one in json.loads((directory / MANIFESTS).read_text(encoding="utf-8"))}
        runs = tuple(_record(directory, one, manifests[one["arm"], one["seed"]], numbers) for one in numbers["runs"])
        claims = tuple(map(_claim, numbers["claims"])) if "claims" in numbers else None
        return Kept(runs, numbers["preset"], numbers["coverage_bands"], numbers["docstring"], claims)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{directory}: {NUMBERS} and {MANIFESTS} do not fit together ({type(error).__name__}: {error}): "
            "take both from one call of `python -m experiments.results`"
        ) from error


def _claim(kept: Mapping[str, Any]) -> Claim:
    fields = {field.name: kept[field.name] for field in dataclasses.fields(Claim) if field.name in kept}  # some are younger
    windows = {name: Window(**kept[name]) for name in ("window", "worse_window") if kept[name] is not None}
    return Claim(**{**fields, **windows})


def _record(directory: Path, one: Mapping[str, Any], manifest: Mapping[str, Any], numbers: Mapping[str, Any]) -> RunRecord:
    columns: Sequence[str] = numbers["problems_columns"]
    outcomes = {
        int(step): {
            name: {key: value for key, value in zip(columns, values, strict=True) if value is not None}
            for name, values in problems.items()
        }
        for step, problems in one["problems"].items()
    }
    rows = {name: _rows(one[name]) for name in ("validation", "training")}
    return RunRecord(
        directory, one["arm"], one["seed"], numbers["timing"], manifest, rows["validation"], rows["training"], outcomes
    )


def _rows(table: Mapping[str, Sequence[Any]]) -> tuple[Mapping[str, Any], ...]:
    """The rows of a table that is kept as its columns; what a row does not have is left out."""
    length = len(next(iter(table.values()), ()))
    return tuple({key: column[i] for key, column in table.items() if column[i] is not None} for i in range(length))
