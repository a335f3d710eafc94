"""What the interpreter changes in Triton's modules and classes, so that it can be taken back and put in again.

The zygote interprets a kernel before it forks, so that its children find the interpreter set up and warm. But its children that
trace and compile need Triton as it was, and those that interpret need it as the interpreter has it.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

_NOTHING = object()


@dataclass(frozen=True, slots=True)
class _Change:
    """What becomes of the attributes of a module or class."""

    place: Any
    given: dict[str, Any]
    gone: tuple[str, ...]

    @classmethod
    def of(cls, place: Any, values: dict[str, Any]) -> _Change:
        """The change to these values, of which `_NOTHING` stands for no attribute."""
        given = {name: value for name, value in values.items() if value is not _NOTHING}
        return cls(place, given, tuple(values.keys() - given.keys()))

    def make(self) -> None:
        if inspect.ismodule(self.place):
            vars(self.place).update(self.given)
        else:
            for name, value in self.given.items():
                setattr(self.place, name, value)
        for name in self.gone:
            delattr(self.place, name)


_aside: list[_Change] = []
"""What was taken back."""


def _places() -> list[Any]:
    """Triton's modules, and the classes that they define. Triton loads parts of `tl.extra` twice: a module that another one names
    is not always the one that is imported by its name."""
    known = [module for name, module in sys.modules.items() if name == "triton" or name.startswith("triton.")]
    named = [value for module in known for value in vars(module).values() if inspect.ismodule(value)]
    modules = list({id(m): m for m in [*known, *named] if m.__name__.partition(".")[0] == "triton"}.values())
    classes = {
        id(value): value
        for module in modules
        for value in vars(module).values()
        if inspect.isclass(value) and value.__module__.startswith("triton.")
    }
    return [*modules, *classes.values()]


@contextmanager
def taken_back() -> Iterator[None]:
    """Around a use of the interpreter. Afterwards Triton is as it was before, until `put_in` is called."""
    before = [(place, dict(vars(place))) for place in _places()]
    try:
        yield
    finally:
        for place, was in before:
            now = dict(vars(place))
            names = [name for name in {**was, **now} if was.get(name, _NOTHING) is not now.get(name, _NOTHING)]
            if names:
                _aside.append(_Change.of(place, {name: now.get(name, _NOTHING) for name in names}))
                _Change.of(place, {name: was.get(name, _NOTHING) for name in names}).make()


def put_in() -> None:
    """Put in again what was taken back; nothing where nothing was."""
    while _aside:
        _aside.pop().make()
