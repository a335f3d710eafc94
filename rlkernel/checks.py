"""Refuses what a field of a frozen dataclass cannot be: one line names the class, the field, its value and what it must be.

A `__post_init__` calls these functions, so that a wrong value is refused where it is written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import fields
from typing import Any, get_args

from rlkernel.errors import UsageError

NAME = re.compile(r"[A-Za-z0-9][\w.+=-]{0,99}", re.ASCII)
"""The name of a run, which is one part of a path."""
PLAIN: dict[str, tuple[type | tuple[type, ...], str]] = {
    "int": (int, "a whole number"),
    "float": ((int, float), "a number"),
    "bool": (bool, "True or False"),
    "str": (str, "a text"),
}
"""Annotation -> the types that fit it, and words for them."""


def check_plain(place: str, owner: Any) -> None:
    """Raise UsageError for a field that is annotated as a number, a text or a bool and is none. place: the owner's name."""
    for field in fields(owner):
        value, kind = getattr(owner, field.name), getattr(field.type, "__name__", str(field.type))
        fits, words = PLAIN.get(kind, (object, ""))
        if not isinstance(value, fits) or (isinstance(value, bool) and kind in ("int", "float")):
            raise UsageError(f"{place}.{field.name} is {value!r}: it must be {words}")


def check_name(place: str, name: str) -> None:
    """Raise UsageError for a name that cannot be one part of a path."""
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{place} is {name!r}: it names a directory, so use a letter or a digit, then at most 99 letters, digits or any of "
            "_ . + = -"
        )


def check_word(owner: Any, name: str, words: Any) -> None:
    """Raise UsageError for a field that is none of the words of a Literal."""
    value = getattr(owner, name)
    if value not in get_args(words):
        raise UsageError(f"{_place(owner, name)} is {value!r}: use one of {', '.join(get_args(words))}")


def check_number(
    owner: Any,
    *names: str,
    least: float = -math.inf,
    above: float = -math.inf,
    most: float = math.inf,
    whole: bool = False,
    infinite: bool = False,
    none: str = "",
    said: Callable[[str], str] | None = None,
) -> None:
    """Raise UsageError for fields that are no number, or not one with least <= value <= most and value > above. whole: it must be
    an int. infinite: `math.inf` is a number, too. none: what None stands for, where it may stand there. said: how a field was
    written, if not as one of the owner's class, e.g. as a flag."""
    for name in names:
        value = getattr(owner, name)
        if none and value is None:
            continue
        number = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
        if number and least <= value <= most and (value > above or above == -math.inf) and (infinite or math.isfinite(value)):
            continue
        words = ["a whole number" if whole else "a number"]
        words += [f"above {above:g}"] if above > -math.inf else []
        words += [] if least == -math.inf else ["that is not negative"] if least == 0 else [f"of at least {least}"]
        words += [] if most == math.inf else [f"and at most {most}"]
        words += [f"or None for {none}"] if none else []
        place = _place(owner, name) if said is None else said(name)
        raise UsageError(f"{place} is {value!r}: it must be {' '.join(words)}")


def check_weights(weights: str, lora_rank: int, rule: str, said: Callable[[str], str]) -> None:
    """Raise UsageError for a format of the weights that the adapters or the rule of an update cannot have. said: how the fields
    `weights`, `lora_rank` and `rule` were written."""
    if lora_rank and weights != "float32":
        raise UsageError(
            f"{said('weights')} is {weights!r} and {said('lora_rank')} {lora_rank}: adapters are float32 over weights that are "
            "frozen in bfloat16, so leave weights at 'float32'"
        )
    if rule != "adamw" and weights != "float32":
        raise UsageError(
            f"{said('weights')} is {weights!r} and {said('rule')} {rule!r}: such weights have an AdamW of their own, so leave "
            "weights at 'float32'"
        )


def _place(owner: Any, name: str) -> str:
    return f"{type(owner).__name__}.{name}"
