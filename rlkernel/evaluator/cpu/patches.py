"""What the interpreter changes in Triton's modules and classes, so that it can be taken back and put in again.

The zygote interprets a kernel before it forks, so that its children find the interpreter set up and warm. But its children that
trace and compile need Triton as it was, and those that interpret need it as the interpreter has it.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_NOTHING = object()
_aside: list[tuple[Any, str, Any]] = []
"""What was taken back: a module or class, the name of an attribute, and the value that the interpreter gives it."""


def _places() -> list[Any]:
    """Triton's modules, and the classes that they define."""
    modules = [module for name, module in sys.modules.items() if name == "triton" or name.startswith("triton.")]
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
            for name in {**was, **now}:
                old, new = was.get(name, _NOTHING), now.get(name, _NOTHING)
                if old is not new:
                    _aside.append((place, name, new))
                    _put(place, name, old)


def put_in() -> None:
    """Put in again what was taken back; nothing where nothing was."""
    while _aside:
        _put(*_aside.pop())


def _put(place: Any, name: str, value: Any) -> None:
    if value is _NOTHING:
        delattr(place, name)
    else:
        setattr(place, name, value)
