"""Rows of a table, one by one: a .parquet or .jsonl file, a directory of these, or a data set on the Hugging Face hub."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from rlkernel.errors import UsageError, first_line

Row = Mapping[str, Any]
TABLES = (".parquet", ".jsonl")
"""The endings of a file that is a table."""


@dataclass(frozen=True, slots=True)
class NoRow:
    """A row that cannot be read."""

    cause: str


@dataclass(frozen=True, slots=True)
class HubName:
    """A data set on the hub, as `owner/name[:split][@revision]`."""

    name: str
    split: str = ""
    """One split, or several joined by `+`; empty: all of them."""
    revision: str = ""

    @staticmethod
    def parse(text: str) -> HubName:
        """
        >>> HubName.parse("owner/name:level_1+level_2@main")
        HubName(name='owner/name', split='level_1+level_2', revision='main')
        """
        rest, _, revision = text.partition("@")
        name, _, split = rest.partition(":")
        return HubName(name, split, revision)


def is_table(place: str) -> bool:
    """Whether a source is a table rather than a directory of problem files."""
    path = Path(place)
    if path.is_dir():
        return any(file.suffix in TABLES for file in path.rglob("*"))
    if place.startswith(("/", ".", "~")):  # no name on the hub begins so
        return path.suffix in TABLES
    return path.suffix in TABLES or (not path.exists() and HubName.parse(place).name.count("/") == 1 and path.suffix != ".py")


def rows_of(place: str) -> Iterator[Row | NoRow]:
    """The rows of a table in their order. Raises UsageError for a table that cannot be read at all."""
    path = Path(place)
    if path.suffix in TABLES and not path.is_file():
        raise UsageError(f"{place}: there is no such file; give a .parquet or .jsonl file")
    if path.suffix == ".jsonl":
        return _json_rows(path)
    return _loaded(place)


def _json_rows(path: Path) -> Iterator[Row | NoRow]:
    """By hand, since one line that is torn must not cost the others."""
    with path.open("rb") as file:
        for line in file:
            if not line.strip():
                continue
            try:
                row = json.loads(line.decode("utf-8"))
            except ValueError as error:
                yield NoRow(f"not JSON: {error}")
                continue
            yield row if isinstance(row, dict) else NoRow("not an object")


def _loaded(place: str) -> Iterator[Row]:
    import datasets  # a second's worth of imports

    datasets.utils.logging.set_verbosity(datasets.utils.logging.CRITICAL)  # what it would say is in the error
    try:
        if Path(place).is_file():
            yield from datasets.load_dataset("parquet", data_files=place, split="train", streaming=True)
            return
        wanted = HubName(place) if Path(place).is_dir() else HubName.parse(place)
        revision = wanted.revision or None
        splits = [wanted.split] if wanted.split else datasets.get_dataset_split_names(wanted.name, revision=revision)
        yield from chain.from_iterable([datasets.load_dataset(wanted.name, split=one, revision=revision) for one in splits])
    except Exception as error:  # whatever the library, the file system or the network says becomes one line about the source
        cause = error.__cause__ or error  # the library says that something went wrong, and below what it was
        raise UsageError(f"{place}: cannot be loaded as a data set: {type(cause).__name__}: {first_line(cause)[:200]}") from error
