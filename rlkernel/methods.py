"""Refuses what is no method before anything runs: a class in place of its instance, or a value that lacks what a Protocol has."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, get_args

from rlkernel.checks import check_plain
from rlkernel.errors import UsageError
from rlkernel.interfaces import Advantage, Correction, Credit, Environment, Removes, Reward, Sampler

PROTOCOLS: Mapping[str, type] = {
    protocol.__name__: protocol for protocol in (Advantage, Correction, Credit, Environment, Reward, Sampler)
}
"""The Protocols of a method by name, which is how a dataclass that has a method in a field annotates it."""


def check_instance(place: str, value: object, kind: type) -> None:
    """Raise UsageError for a class, and for what is no instance of `kind`, a class or a Protocol of `rlkernel.interfaces`.
    place: the field, e.g. `Run.loss`."""
    _check_no_class(place, value)
    if not isinstance(value, kind):
        name = kind.__name__
        fix = f"write {name}(), with what differs"
        if name in PROTOCOLS:
            lacking = ", ".join(member for member in members(kind) if not hasattr(value, member))
            fix = f"it has no {lacking}; rlkernel/interfaces.py says what that is"
        raise UsageError(f"{place} is {value}, which is no {name}: {fix}")


def members(protocol: type) -> tuple[str, ...]:
    """What an instance of a Protocol has, in the order in which it is written.

    >>> members(Correction)
    ('removes', 'needs_ratios', '__call__')
    """
    return tuple(name for name in vars(protocol) if name == "__call__" or not name.startswith("_"))


def told_kind(value: object) -> str:
    """The class of a value behind its article, which goes by the first letter.

    >>> told_kind(1), told_kind([])
    ('an int', 'a list')
    """
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def check_method(place: str, method: object, protocol: type) -> None:
    """Raise UsageError for what a manifest could not show, or what would fail in the middle of a run. A method that is a field of
    this one, e.g. `PR.inner`, is held to the same."""
    check_shown(place, method)
    check_instance(place, method, protocol)
    takes, wanted = (list(inspect.signature(type_.__call__).parameters)[1:] for type_ in (type(method), protocol))
    if takes != wanted:
        called, right = ", ".join(takes), ", ".join(wanted)
        raise UsageError(f"{place} is {method}, called with ({called}): what is used as {protocol.__name__} takes ({right})")
    if isinstance(method, Correction) and method.removes not in get_args(Removes):
        raise UsageError(
            f"{place}: {type(method).__name__}.removes is {method.removes!r}: use one of {', '.join(get_args(Removes))}"
        )
    _check_fields(place, method)


def check_shown(place: str, value: object) -> None:
    """Raise UsageError for a class, and for what is no frozen dataclass, whose fields a manifest shows."""
    _check_no_class(place, value)
    parameters = getattr(value, "__dataclass_params__", None)
    if parameters is None or not parameters.frozen:
        raise UsageError(f"{place} is {told_kind(value)}: make it a frozen dataclass, whose fields the manifest shows")


def _check_fields(place: str, owner: Any) -> None:
    """Raise UsageError for a field of a method that is a class, or that is annotated with a Protocol, a number, a text or a
    bool and is none."""
    check_plain(place, owner)
    for field in fields(owner):
        value, inside = getattr(owner, field.name), f"{place}.{field.name}"
        protocol = PROTOCOLS.get(getattr(field.type, "__name__", str(field.type)))
        if protocol is not None:
            check_method(inside, value, protocol)
            continue
        _check_no_class(inside, value)
        if is_dataclass(value):
            _check_fields(inside, value)


def _check_no_class(place: str, value: object) -> None:
    if isinstance(value, type):
        raise UsageError(f"{place} is the class {value.__name__}: write {value.__name__}()")
