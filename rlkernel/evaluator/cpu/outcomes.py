"""What comparisons of a kernel come to: some are true everywhere where results are compared, and false somewhere at full shape.

`cols + 1024 > row` leaves nothing out of 512 columns, and `place != 512` nothing of 64, however the number is spelled. So the
shares of what each comparison comes to are noted beside loops and grids (`extents`). Who has an answer at full shape that hardly
comes up here must be right where it does. Shares are asked for, because elements that a mask leaves out are compared, too.
Comparisons are told apart by their places in a kernel's code. What memory decides nobody knows. Source: ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np
from triton.runtime.interpreter import TensorHandle

from rlkernel.evaluator.cpu.kinds import known_others
from rlkernel.evaluator.cpu.numbers import Array
from rlkernel.evaluator.cpu.seen import Watched, is_seen
from rlkernel.evaluator.cpu.statements import running

Compare = Callable[[Array, Array], Array]
COMPARISONS = {np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal}
PARTS = 1024
"""Shares are counted in so many parts."""
MOST_BELOW = 4
"""How many times smaller a share may be where results are compared."""
ENOUGH = PARTS // 32
"""The share that is enough in any case: masks may leave out most of blocks that are larger than all that there is."""


class Outcomes:
    """What the comparisons of a launch have come to: how many elements were true, and how many were false."""

    def __init__(self) -> None:
        self._counts: dict[int, list[int]] = {}
        self._elsewhere: set[tuple[int, bool]] = set()

    def note(self, at: int, made: Array, elsewhere: Array | None) -> None:
        """A comparison came to this, and to something `elsewhere`, in programs that are not followed."""
        counts = self._counts.setdefault(at, [0, 0])
        true = int(np.count_nonzero(made))
        counts[True] += true
        counts[False] += made.size - true
        if elsewhere is not None:
            self._elsewhere |= {(at, bool(one)) for one in np.unique(elsewhere)}

    def shares(self) -> Iterator[tuple[int, bool, int]]:
        """Places, answers, and their shares of all elements, in parts."""
        for at, counts in self._counts.items():
            for answer in (False, True):
                if counts[answer] or (at, answer) in self._elsewhere:
                    yield at, answer, -(-PARTS * counts[answer] // sum(counts))


class Machine(Watched, Protocol):
    """Where programs run whose comparisons are watched."""

    outcomes: Outcomes


def note(machine: Machine, compare: Compare, left: TensorHandle, right: TensorHandle, made: Array) -> None:
    """A comparison of two blocks is made."""
    if not is_seen(machine, [left, right]):
        return
    frame = running()
    if frame is None:
        return
    one, other = (known_others(side) if machine.dry else None for side in (left, right))
    apart = one is not None or other is not None
    elsewhere = compare(_ends(left) if one is None else one, _ends(right) if other is None else other) if apart else None
    machine.outcomes.note(frame.f_lasti, made, elsewhere)


def _ends(value: TensorHandle) -> Array:
    """The first and the last element, which are the same in all programs."""
    flat: Array = value.data.reshape(-1)
    return flat[None, [0, -1]] if flat.size > 1 else flat[None, :]
