"""Runs written as a file: `--config run.toml` has flags, and arms beside those of the experiment. A sweep needs no Python.

seeds = [0, 1]                      a flag, by its name; the command line wins
steps = 8
run = ["grpo", "wide"]              the arms that are run; without it, all of the experiment and of the file

[arms.wide]                         an arm of one's own
base = "grpo"                       the arm that it differs from
loss = { clip_high = 0.4 }          a field of `rlkernel.config.Run`, as a manifest shows it
advantage = "dr_grpo"               a method by its name (`--methods` lists them) ...
corrections = [{ class = "MRS", low = 0.99 }]     ... or by its class, with its fields
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import StrEnum
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from rlkernel.commands.listing import Tables
from rlkernel.config import METHODS, Run
from rlkernel.errors import UsageError

OWN = ", or register your own in algorithms/__init__.py"
"""What is said besides of a method that nobody has registered."""
FIXED = ("name", "problems", "seed")
"""Fields of a Run that an arm of a file does not set: its name is its table's, and seeds are flags."""
WORDS: Mapping[Any, str] = {int: "a whole number", float: "a number", str: "a text", bool: "true or false", Path: "a path"}


@dataclass(frozen=True)
class RunFile:
    """What a file says."""

    flags: Mapping[str, Any] = field(default_factory=dict)
    """Values of the command's flags."""
    named: tuple[str, ...] = ()
    """The arms that are run; empty: all."""
    arms: Mapping[str, Run] = field(default_factory=dict)
    """The arms that the file adds, without their changes."""
    changes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Fields of the Run by arm. They come after the preset's own values."""
    path: Path = Path()
    """The file."""

    def after(self, adapt: Callable[[Run], Run]) -> Callable[[Run], Run]:
        """A preset's `adapt`, after which an arm gets what the file says of it. Raises UsageError for what no run can have."""

        def changed(run: Run) -> Run:
            adapted = adapt(run)
            try:
                return replace(adapted, **self.changes.get(run.name, {}))
            except UsageError as error:
                raise UsageError(f"--config {self.path}: arms.{run.name}: {error}") from error

        return changed


def read(path: Path, flags: type, arms: Mapping[str, Run], tables: Tables) -> RunFile:
    """Read a file. flags: the command's dataclass. Raises UsageError naming the file, the key and what it could have been."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"--config {path}: there is no such file") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"--config {path}: cannot be read as TOML: {getattr(error, 'strerror', None) or error}") from error
    if not content:
        raise UsageError(f"--config {path}: it is empty; name what this run does otherwise, such as seeds = [0]")
    try:
        return replace(_read(content, flags, arms, tables), path=path)
    except UsageError as error:
        raise UsageError(f"--config {path}: {error}") from error


def _read(content: Mapping[str, Any], kind: type, arms: Mapping[str, Run], tables: Tables) -> RunFile:
    hints = {name: hint for name, hint in get_type_hints(kind).items() if name != "config"}
    plain = {name.replace("-", "_"): value for name, value in content.items() if name not in ("arms", "run")}
    _known(plain, [*hints, "arms", "run"], "")
    given = {name: _plain(hints[name], value, name) for name, value in plain.items()}
    added, changes = {}, {}
    for name, own in _table(content.get("arms", {}), "arms").items():
        where = f"arms.{name}."
        wanted = dict(_table(own, f"arms.{name}"))
        base = wanted.pop("base", None)
        if base not in arms:
            said = "is missing" if base is None else f"is {base!r}"
            raise UsageError(f"{where}base {said}: name the arm that this one differs from, one of {', '.join(arms)}")
        if name in arms:
            raise UsageError(f"arms.{name} is an arm of the experiment: give yours another name")
        _known(wanted, [f.name for f in fields(Run) if f.name not in FIXED], where)
        if both := [key for key in wanted if key in given]:
            raise UsageError(f"{where}{both[0]} is also at the top of the file, which would win: leave one of them out")
        changes[name] = {key: _value(arms[base], key, value, tables, where) for key, value in wanted.items()}
        added[name] = replace(arms[base], name=name)
    named = content.get("run", [])
    for name in named if isinstance(named, list) else [named]:
        if name not in {**arms, **added}:
            raise UsageError(f"run: unknown arm {name!r}{_nearest(str(name), [*arms, *added])}")
    return RunFile(given, tuple(named) if isinstance(named, list) else (named,), added, changes)


def _value(owner: Any, key: str, given: Any, tables: Tables, where: str) -> Any:
    """The value of a field of a dataclass `owner`, from what a file gives for it."""
    current, place = getattr(owner, key), where + key
    if key == "corrections":
        return tuple(_method(None, item, "correction", tables, place) for item in (given if isinstance(given, list) else [given]))
    if is_dataclass(current):
        if isinstance(owner, Run) and key not in METHODS:  # a group of settings, which has no name
            _table(given, place, f" with some of its fields: {', '.join(f.name for f in fields(current))}")
        return _method(current, given, key, tables, place)
    return _plain(get_type_hints(type(owner))[key], given, place)


def _method(current: Any, given: Any, table: str, tables: Tables, place: str) -> Any:
    """A method by its name, or by its class with its fields; without a class, the current one with other fields. It is one of
    the table of that name, or of any where there is none, as for a method's own methods."""
    methods = tables.get(table) or {name: cls for every in tables.values() for name, cls in every.items()}
    if isinstance(given, str):
        _known([given], methods, f"{place} = ", OWN)
        return methods[given]()
    wanted = dict(_table(given, place))
    name = wanted.pop("class", None)
    classes = {cls.__name__: cls for cls in methods.values()}
    if current is not None:
        classes.setdefault(type(current).__name__, type(current))
    if name is None and current is None:
        raise UsageError(f"{place}: give a name, or a class with its fields: {{ class = {next(iter(classes))!r} }}")
    if name is not None:
        _known([name], classes, f"{place}.class = ", OWN)
    start = current if name is None else classes[name]()
    _known(wanted, [f.name for f in fields(start)], f"{place}.")
    return replace(start, **{key: _value(start, key, value, tables, f"{place}.") for key, value in wanted.items()})


def _plain(hint: Any, given: Any, place: str) -> Any:
    """A value of a plain type, or a tuple of these. Raises UsageError for a value of another type."""
    if get_origin(hint) in (Union, UnionType):
        hint = next(part for part in get_args(hint) if part is not type(None))
    if get_origin(hint) is tuple:
        part = get_args(hint)[0]
        return tuple(_plain(part, item, place) for item in (given if isinstance(given, list) else [given]))
    if get_origin(hint) is Literal:
        _known([given], get_args(hint), f"{place} = ")
        return given
    if hint is Path and isinstance(given, str):
        return Path(given)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        _known([given], tuple(hint), f"{place} = ")
        return hint(given)
    fits = isinstance(given, int | float) if hint is float else isinstance(given, hint)
    if not fits or (isinstance(given, bool) and hint is not bool):
        raise UsageError(f"{place} is {given!r}: give {WORDS.get(hint, 'a value of its type')}")
    return float(given) if hint is float else given


def _table(given: Any, place: str, what: str = "") -> Mapping[str, Any]:
    """What a file gives, if it is a table. Raises UsageError that says `what` kind of table is asked for."""
    if not isinstance(given, Mapping):
        raise UsageError(f"{place} is {given!r}: give a table{what}")
    return given


def _known(given: Iterable[str], known: Iterable[str], where: str, otherwise: str = "") -> None:
    """Raise UsageError for the first that is not known, with the nearest that is, or with all and what else to do."""
    options: Sequence[str] = list(known)
    for name in given:
        if name not in options:
            raise UsageError(f"unknown {where}{name}{_nearest(str(name), options, otherwise)}")


def _nearest(name: str, options: Sequence[str], otherwise: str = "") -> str:
    close = difflib.get_close_matches(name, options, n=1, cutoff=0.5)
    return f"; perhaps you meant {close[0]}" if close else f": use one of {', '.join(options)}{otherwise}"
