"""How much the interpreter has to do: seen early, so that something smaller can be done instead.

Work is counted and not timed, so that a busy machine changes no verdict. One operation of the interpreter counts 1, and 1 more
for each `ELEMENTS` elements that it makes: 20 to 50 microseconds of a core each. What a launch still needs is taken to be what
its programs have needed so far, on average. Source: ours.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from triton.runtime.interpreter import TensorHandle

ELEMENTS = 1024
"""Elements that take as long as one operation takes at least."""
LOOK_AFTER = 8
"""Programs of a launch that have ended before its work is estimated."""


class TooMuchWork(Exception):
    """The interpreter would take too long for what was launched."""


class Pace:
    """The work of one forward's launches, or of one launch that is priced; more than `most` is too much."""

    def __init__(self, most: float) -> None:
        self.most = most
        self.work = 0.0
        """What was done so far."""
        self._before = 0.0
        """What was done before the launch that runs."""
        self._programs = self._ended = 0

    def launch(self, programs: int) -> None:
        """A launch of so many programs begins."""
        self._before, self._programs, self._ended = self.work, programs, 0

    def ended(self) -> None:
        """A program of the launch has ended. Raises TooMuchWork."""
        self._ended += 1
        if self._ended >= LOOK_AFTER:
            launch = (self.work - self._before) / self._ended * self._programs
            if self._before + launch > self.most:
                raise TooMuchWork

    def add(self, made: Any) -> None:
        """The interpreter has done one operation. Raises TooMuchWork."""
        self.work += 1.0 + made.data.size / ELEMENTS if isinstance(made, TensorHandle) else 1.0
        if self.work > self.most:
            raise TooMuchWork


def _counted(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = method(self, *args, **kwargs)
        if self.pace is not None:
            self.pace.add(made)
        return made

    return call


def counts_operations(machine: type) -> type:
    """A class of machines (`pace`: a `Pace`, or None) whose methods are counted."""
    for name in dir(machine):
        if name.startswith("create_"):
            setattr(machine, name, _counted(getattr(machine, name)))
    return machine
