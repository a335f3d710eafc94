"""Finds out which of a candidate's functions are live: without their launches, the output of a round that matched changes.

The rest of forward may never end without them, or leave its tensors. That costs the process and proves the function needed. So
what was found before is handed on, a wrong candidate is never looked at, and the last function of a forward comes first, because
nothing can wait for it. Pure; `session.py` makes the calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

NOISE_FACTOR = 4.0
"""A skipped launch changes the output if it does so by this much more than repeating the call does."""
SURE = 100.0
"""A change of this many times the allowed error needs no comparison with a repeated call."""
MOST_SPINS = 2
"""How many processes a candidate's kernels may cost that wait for ever without a launch. Afterwards nothing is left out, and a
function that was not looked at does not count as live: an honest forward has one kernel or two that others wait for."""
LEAST_PATIENCE = 1.0
"""A card that other processes use may be silent for a third of a second, and a launch that does nothing was taken for needed."""
PATIENCE = 20.0


class Failing(Exception):
    """The rest of forward leaves its tensors or never ends. The process is lost."""

    def __init__(self, *, spun: bool) -> None:
        super().__init__("forward fails without some of its launches")
        self.spun = spun
        """Whether it never ends."""


class Indispensable(Exception):
    """The rest of forward fails without the launches of `function`, so that they are needed. The process is lost. Example: they
    set a counter to zero that later launches count in, and address memory by."""

    def __init__(self, function: int, found: Mapping[int, bool], *, spun: bool) -> None:
        super().__init__(f"forward fails without the launches of function {function}")
        self.function = function
        self.found = dict(found)
        """What was found out before: function -> whether it is live."""
        self.spun = spun


def patience(seconds: float, most: float) -> float:
    """How many seconds to wait for a forward that lacks a launch, if the whole call took so many; at most `most`.

    A kernel that waits for what was left out costs its process whatever happens, so that it need not have all the time of a
    forward. Whoever makes the rest slower by this much could as well make it wait for ever.

    >>> patience(0.005, 2.0), patience(1.0, 2.0)
    (1.1, 2.0)
    """
    return min(most, LEAST_PATIENCE + PATIENCE * seconds)


def in_order(functions: Iterable[int]) -> list[int]:
    """The functions of a forward's launches, which are given in their order: each once, the one that is launched last first.

    >>> in_order([0, 1, 0, 2])
    [2, 0, 1]
    """
    return list(dict.fromkeys(reversed(list(functions))))


def live_functions(
    functions: Iterable[int], leave_out: Callable[[int], float], noise: Callable[[], float], allowed: float
) -> dict[int, bool]:
    """Function -> whether leaving its launches out changes the output more than repeating the call does.

    leave_out: makes the call without a function's launches, and says by how much its output differs, relative; may raise Failing.
    noise: repeats the call, and says the same. Raises Indispensable.
    """
    found: dict[int, bool] = {}
    unsure: dict[int, float] = {}
    for function in functions:
        try:
            change = leave_out(function)
        except Failing as error:
            raise Indispensable(function, found, spun=error.spun) from error
        if change == 0.0 or change > SURE * allowed:
            found[function] = change > 0.0
        else:
            unsure[function] = change
    if unsure:
        usual = noise()
        found |= {function: change > NOISE_FACTOR * usual for function, change in unsure.items()}
    return found
