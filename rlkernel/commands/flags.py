"""Flags of a command from the fields of a frozen dataclass: `--max-new-tokens 8` sets the field `max_new_tokens`.

A field's type says what can be read, its default what holds otherwise, and the string below it is its help. A field that is True
otherwise has a negated flag: `--no-compiled`.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from enum import StrEnum
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar, get_args, get_origin, get_type_hints

from rlkernel.errors import UsageError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")
EXPECTED: Mapping[Any, str] = {int: "a whole number", float: "a number"}
"""Type of a field -> what a value that cannot be read should have been."""


def parse_flags(
    default: T,
    args: Sequence[str],
    prog: str,
    rest: str = "",
    *,
    words: str = "",
    told: Mapping[str, str] = MappingProxyType({}),
) -> T:
    """`default` with the fields that `args` override; `--help` prints and exits. rest: the field that takes what is no flag.
    words: what the help shows between `prog` and the flags. told: words for the help of a field without a default.

    Raises UsageError with one line that ends in the command for help, `prog --help`, which can be pasted.
    """
    kind = type(default)
    parser = _Parser(prog, words, description=inspect.getdoc(kind), allow_abbrev=False, argument_default=argparse.SUPPRESS)
    helps, hints = _helps(kind), get_type_hints(kind)
    flags = {field.name: "--" + field.name.replace("_", "-") for field in fields(default) if field.name != rest}
    for name in hints:
        value, flag = getattr(default, name), flags.get(name, name)
        words = told.get(name, "") if value is None else f"default: {shown(value, flag)}" if value not in (False, (), "") else ""
        text = " ".join(part for part in (helps.get(name, ""), f"({words})" if words else "") if part)
        reading = {"action": argparse.BooleanOptionalAction} if value is True else _reading(hints[name])
        parser.add_argument(flag, help=text.replace("%", "%%"), **reading)
    found, unknown = parser.parse_known_intermixed_args([_dashed(word) for word in args])
    if unknown:
        word = "" if unknown[0].startswith("-") else "; what is no flag comes before the flags"
        parser.error(f"Unrecognized options: {', '.join(unknown)}{word or nearest(unknown[0], flags.values())}")
    return replace(default, **{name: tuple(value) if isinstance(value, list) else value for name, value in vars(found).items()})


class _Parser(argparse.ArgumentParser):
    """A parser that raises what argparse would print before it exits."""

    def __init__(self, command: str, words: str, **options: Any) -> None:
        super().__init__(prog=f"{command} {words}".rstrip(), **options)
        self.command = command

    def error(self, message: str) -> NoReturn:
        if message.startswith("argument "):  # "argument --steps: many: give a whole number"
            message = message.removeprefix("argument ").replace(": ", " ", 1)
        raise UsageError(f"{message} (see {self.command} --help)")


def nearest(word: str, words: Iterable[str], most: int = 1) -> str:
    """What ends a message about an unknown word: the known ones that may be meant, `most` of them, if there are any.

    >>> nearest("evalute", ["evaluate", "compare"]), nearest("x", ["evaluate"])
    ('; perhaps you meant evaluate', '')
    >>> nearest("rewrd", ["reward", "step", "rewards"], 3)
    '; perhaps you meant reward or rewards'
    """
    close = difflib.get_close_matches(word, list(words), n=most, cutoff=0.75)
    return f"; perhaps you meant {' or '.join(close)}" if close else ""


def shown(value: Any, flag: str = "") -> str:
    """A default as one would type it.

    >>> shown((1, 2), "--levels"), shown(True, "--compiled"), shown(0.5, "--share")
    ('1 2', '--compiled', '0.5')
    """
    if value is True:
        return flag
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _dashed(word: str) -> str:
    """A flag as it is known, also if it was written as its field is.

    >>> _dashed("--max_new_tokens=8"), _dashed("a_b")
    ('--max-new-tokens=8', 'a_b')
    """
    flag, equals, value = word.partition("=")
    return flag.replace("_", "-") + equals + value if flag.startswith("--") else word


def _helps(kind: type) -> dict[str, str]:
    """Field -> the string below it, on one line."""
    (cls,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(cls, ast.ClassDef)
    return {
        ast.unparse(field.target): " ".join(str(ast.literal_eval(below.value)).split())
        for field, below in pairwise(cls.body)
        if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr)
    }


def _reading(hint: Any) -> dict[str, Any]:
    """How argparse reads a field of the type `hint`: a bool, a plain type, one of several words, or a tuple of these."""
    parts = [part for part in get_args(hint) if part not in (type(None), ...)]
    if hint is bool:
        return {"action": "store_true"}
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return {"type": _reader(hint, f"one of {', '.join(hint)}"), "metavar": "|".join(hint)}
    if get_origin(hint) is Literal:
        words = list(filter(None, parts))  # an empty word is the default: not given
        return {
            "type": _reader({part: part for part in parts}.__getitem__, f"one of {', '.join(words)}"),
            "metavar": "|".join(words),
        }
    if parts:
        return {**_reading(parts[0]), **({"nargs": "*"} if get_origin(hint) is tuple else {})}
    return {"type": _reader(hint, EXPECTED.get(hint, "a text")), "metavar": hint.__name__.upper()}


def _reader(read: Callable[[str], Any], expected: str) -> Callable[[str], Any]:
    """`read`, whose failure says what was expected."""

    def reader(text: str) -> Any:
        try:
            return read(text)
        except (ValueError, KeyError):
            raise argparse.ArgumentTypeError(f"{text}: give {expected}") from None

    return reader
