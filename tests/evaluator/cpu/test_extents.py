"""What repeats once where results are compared and several times at full shape."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rlkernel.evaluator.cpu.extents import Extents
from rlkernel.evaluator.cpu.loops import For, Numbers, While
from rlkernel.evaluator.cpu.reuse import Reuse
from rlkernel.evaluator.messages.children import Extent


def extents(**counts: int) -> Extents:
    made = Extents()
    for name, count in counts.items():
        made.note((name, 1), count)
    return made


def test_what_is_short_is_one_long_here_and_longer_at_full_shape() -> None:
    """`a` has two turns here; `b` one, `c` none, and both several at full shape; `d` has one there, too."""
    program: Any = SimpleNamespace(functions=[SimpleNamespace(source=name) for name in "abcd"])
    here, full = extents(a=2, b=1, d=1), extents(a=9, b=2, c=3, d=1)
    assert here.short(full, program) == (Extent(1, 1, 2), Extent(2, 1, 3))


def test_counts_do_not_tell_two_extents_apart() -> None:
    """At full shape other programs may be followed, with other numbers of turns."""
    assert {Extent(0, 1, 2)} == {Extent(0, 1, 5)}
    assert {Extent(0, 1, 2)} != {Extent(0, 2, 2)}


@pytest.mark.parametrize("shortens", [False, True])
def test_loops_note_all_of_their_turns(shortens: bool) -> None:
    """Also those that are not followed, because one turn stands for them. 100 in steps of 30 are 4 turns."""
    machine: Any = SimpleNamespace(dry=True, shortens=shortens, counts=None, extents=Extents(), reuse=Reuse())
    For(machine, ("f", 1), Numbers(range(7), int))
    For(machine, ("f", 2), range(3))
    loop, left = While(machine, ("f", 3), "Lt", 0, 100, 30), iter([True, True, True, True, False])
    loop.goes_on(next(left))
    if not shortens:
        assert sum(loop.goes_on(more) for more in left) == 3
    full: Any = SimpleNamespace(functions=[SimpleNamespace(source="f")])
    assert [one.count for one in Extents().short(machine.extents, full)] == [7, 3, 4]
