"""From what `--problems` says to problems: `load`. A row that is no problem is told by number and cause, and left out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rlkernel.errors import UsageError
from rlkernel.sources.directory import lacking, problem_files, read_reference
from rlkernel.sources.schemas import GIVEN, SCHEMAS, BadRow, Parts, Schema, by_columns, schema_of
from rlkernel.sources.tables import NoRow, Row, is_table, rows_of
from rlkernel.types import Problem, Split

VALIDATION_SHARE = 64
"""The share of hashes, in 256ths: a quarter of a source's problems are its validation split, by a hash of their names."""
MOST_VALIDATION = 100
"""The most validation problems of a table."""
TOLD = 5
"""How many of the rows that are left out are told one by one."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A row that is no problem."""

    number: int
    """The number of the row in its table, from 1."""
    cause: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a source holds."""

    place: str
    problems: tuple[Problem, ...]
    left_out: tuple[LeftOut, ...] = ()

    def lines(self) -> Iterator[str]:
        """What people are told: how many problems there are, and which rows were left out."""
        rest = f", {len(self.left_out):,} rows left out" if self.left_out else ""
        yield f"{self.place}: {len(self.problems):,} problems{rest}"
        yield from (f"  row {row.number}: {row.cause}" for row in self.left_out[:TOLD])
        if len(self.left_out) > TOLD:
            yield f"  and {len(self.left_out) - TOLD:,} more"


def load(place: str, columns: Sequence[str] = (), split: Split | None = None, *, flag: str = "") -> Loaded:
    """The problems of a source: a directory of files, a .parquet or .jsonl file, or `owner/name[:split][@revision]` on the hub.

    columns: `part=COLUMN` for a table that no schema knows, e.g. `reference=code`. split: that of all problems; without it, a
    prepared table's own, or by a hash of the names. Names are made unique in the order of the rows.
    Raises UsageError, which begins with the `flag` that named the source, if one did: no such source, columns that nobody knows,
    or no row that is a problem.
    """
    try:
        return _loaded(place, columns, split)
    except UsageError as error:
        if not flag or str(error).startswith("--"):
            raise
        raise UsageError(f"{flag} {error}") from error


def _loaded(place: str, columns: Sequence[str], split: Split | None) -> Loaded:
    if not is_table(place):
        if columns:
            raise UsageError(f"--column is for tables, and {place} is a directory of problem files: leave it out")
        found = [Parts(file.name, file.level, read_reference(file.path)) for file in problem_files(Path(place))]
        return Loaded(place, tuple(_problems(found, split, len(found))))
    named = _named(columns)
    kept: list[Parts] = []
    left_out: list[LeftOut] = []
    for number, row in enumerate(rows_of(place), 1):
        try:
            kept.append(_parts(row, named, place))
        except BadRow as error:
            left_out.append(LeftOut(number, str(error)))
    if not kept:
        raise UsageError(
            f"{place}: no row is a problem; row {left_out[0].number}: {left_out[0].cause}" if left_out else f"{place}: no rows"
        )
    return Loaded(place, tuple(_problems(kept, split, MOST_VALIDATION)), tuple(left_out))


def load_for_training(problems: str, validation: str, columns: Sequence[str] = ()) -> tuple[Loaded, ...]:
    """The sources of a run. With `validation`, all of `problems` are trained, apart from those with the text of one that
    validates; without it, `load` chooses which validate. Raises UsageError."""
    if not validation:
        return (load(problems, columns, flag="--problems"),)
    held = load(validation, columns, "validation", flag="--validation")
    texts, names = {problem.source for problem in held.problems}, {problem.name for problem in held.problems}
    found = load(problems, columns, "train", flag="--problems")
    kept = [problem for problem in found.problems if problem.source not in texts]
    if not kept:
        raise UsageError(
            f"--problems {problems}: every problem of it is also in --validation {validation}, so that none is left to train"
        )
    unique = tuple(replace(problem, name=_unused(problem.name, names)) for problem in kept)
    return replace(found, problems=unique), held


def _named(columns: Sequence[str]) -> Schema | None:
    """The schema that `--column` describes. Raises UsageError."""
    found: dict[str, str] = {}
    for text in columns:
        part, equals, column = text.partition("=")
        if not equals or not column or part not in GIVEN:
            raise UsageError(f"--column {text}: write PART=COLUMN with one of the parts {', '.join(GIVEN)}")
        found[part] = column
    if found and "reference" not in found:
        raise UsageError("--column: say which column holds the references, e.g. --column reference=code")
    return by_columns(found) if found else None


def _parts(row: Row | NoRow, named: Schema | None, place: str) -> Parts:
    """The parts of a row's problem. Raises BadRow, and UsageError for a table with columns that nobody knows."""
    if isinstance(row, NoRow):
        raise BadRow(row.cause)
    schema = named or schema_of(row)
    if schema is None:
        known = "; ".join(f"{name}: {', '.join(schema.columns)}" for name, schema in SCHEMAS.items())
        raise UsageError(
            f"{place}: its columns are {', '.join(row)}, which no schema has ({known}): say which holds the references, "
            "--column reference=NAME"
        )
    if missing := [column for column in schema.columns if column not in row]:
        raise UsageError(f"{place}: it has no column {missing[0]}; its columns are {', '.join(row)}")
    parts = schema.read(row)
    if (cause := lacking(parts.source)) is not None:
        raise BadRow(cause)
    return parts


def _problems(found: Sequence[Parts], split: Split | None, most: int) -> Iterator[Problem]:
    names: set[str] = set()
    unique = [replace(parts, name=_unused(parts.name, names)) for parts in found]
    held = _validation((parts.name for parts in unique), most)
    for parts in unique:
        own: Split = split or parts.split or ("validation" if parts.name in held else "train")
        yield Problem(parts.name, parts.level, own, parts.source, prompt=parts.prompt)


def _validation(names: Iterable[str], most: int) -> frozenset[str]:
    """Which of the names validate, so that adding one moves few others: about a quarter, and at most `most`."""
    hashed: Mapping[str, bytes] = {name: hashlib.sha256(name.encode()).digest() for name in names}
    low = sorted((digest, name) for name, digest in hashed.items() if digest[0] < VALIDATION_SHARE)
    return frozenset(name for _, name in low[:most])


def _unused(name: str, names: set[str]) -> str:
    """A name that is not among `names` yet, to which it is added.

    >>> used = {"a"}
    >>> _unused("a", used), _unused("a", used), _unused("b", used)
    ('a~2', 'a~3', 'b')
    """
    k, found = 1, name
    while found in names:
        k += 1
        found = f"{name}~{k}"
    names.add(found)
    return found
