"""What repeats once where results are compared and several times at full shape."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import pytest

from rlkernel.evaluator.cpu.extents import SIDES, Extents, growth
from rlkernel.evaluator.cpu.latency import Chain
from rlkernel.evaluator.cpu.loops import For, Numbers, While
from rlkernel.evaluator.cpu.reuse import Reuse
from rlkernel.evaluator.judging.costs.counts import Counts
from rlkernel.evaluator.messages.children import Extent

AXIS, LOOP = 1, 3
PROGRAM: Any = SimpleNamespace(functions=[SimpleNamespace(source=name) for name in "abcdef"])


def extents(place: int, **counts: int) -> Extents:
    made = Extents()
    for name, count in counts.items():
        made.note((name, place), count)
    return made


def test_a_loop_is_short_that_has_no_turn_between_the_first_and_the_last() -> None:
    """`a` has three turns here; `b` two, `c` none, and both more at full shape; `d`, `e` and `f` have few there."""
    here, full = extents(LOOP, a=3, b=2, d=1, e=2, f=0), extents(LOOP, a=9, b=3, c=2, d=1, e=2, f=1)
    assert here.short(full.repeated(PROGRAM), PROGRAM) == (Extent(1, LOOP, 3, 3), Extent(2, LOOP, 2, 2))


def test_two_programs_show_a_grid_whose_programs_do_the_same_and_three_any_other() -> None:
    here, full = extents(AXIS, a=2, b=2, c=1, d=3), extents(AXIS, a=9, b=9, c=9, d=9)
    full.note_uneven("b")
    full.note_uneven("d")
    assert here.short(full.repeated(PROGRAM), PROGRAM) == (Extent(1, AXIS, 9, 3), Extent(2, AXIS, 9, 2))


def test_most_turns_show_a_loop_whose_turns_memory_tells() -> None:
    """A kernel may hold a length against a number that is larger than the small shape's lengths."""
    here, full = extents(LOOP, a=40, b=40), extents(LOOP, a=64, b=64)
    full.note_told(("a", LOOP))
    assert full.told and not here.told
    assert here.short(full.repeated(PROGRAM), PROGRAM) == (Extent(0, LOOP, 64, 48),)


def test_all_turns_show_a_loop_of_a_kernel_that_adds_up_in_few_bits() -> None:
    """What such sums lose grows with their length; grids go on as ever."""
    here, full = extents(LOOP, a=8, b=8), extents(LOOP, a=64, b=64)
    full.note(("a", AXIS), 9)
    full.note_adding_in_little("a")
    assert [(one.place, one.enough) for one in full.repeated(PROGRAM)] == [(AXIS, 2), (LOOP, 64), (LOOP, 3)]
    here.note(("a", AXIS), 2)
    assert here.short(full.repeated(PROGRAM), PROGRAM) == (Extent(0, LOOP, 64, 64),)


def test_work_grows_with_programs_and_with_the_turns_of_what_is_short() -> None:
    def program(**grids: tuple[int, ...]) -> Any:
        return SimpleNamespace(
            launches=[
                SimpleNamespace(function="abcdef".index(name), configs=[SimpleNamespace(grid=grid)])
                for name, grid in grids.items()
            ]
        )

    small, full = program(a=(2, 1), b=(1, 1)), program(a=(60, 4), b=(1, 1))
    # 240 programs of `a` and one of `b`, whose loop has 9 turns, in place of 3: axes and sides of branches are no turns.
    short = [Extent(0, AXIS, 4, 3), Extent(1, LOOP, 9, 3), Extent(1, LOOP + 1, 5, 3), Extent(0, SIDES, 2, 2)]
    assert growth(small, full, short) == (240 + 9) / 3
    # A loop with 7 turns in a function that is not launched is in either.
    assert growth(small, full, [Extent(2, LOOP, 7, 3)]) == 7 * (240 + 1) / 3
    assert growth(program(a=(0,)), program(a=(5,)), []) == 5


def test_blocks_are_unfilled_where_a_mask_leaves_elements_out_here_and_none_at_full_shape() -> None:
    """Masks of `a` leave some out in both places; those of `b` do here alone, which matters where elements meet: in `a`, which
    may read what `b` writes, or in `b`."""
    here, full = Extents(), Extents()
    here.note_left_out("a")
    full.note_left_out("a")
    assert full.left_out(PROGRAM) == (0,)
    assert not here.unfilled(full.left_out(PROGRAM), (), PROGRAM)
    assert not here.unfilled((0, 1), (), PROGRAM)
    here.note_left_out("b")
    assert not here.unfilled(full.left_out(PROGRAM), (), PROGRAM)
    for where in ("a", "b"):
        there = copy.deepcopy(here)
        there.note_meeting(where)
        assert there.unfilled(full.left_out(PROGRAM), (), PROGRAM)


def test_blocks_are_unfilled_where_a_loop_has_no_turn_here_and_some_at_full_shape() -> None:
    """Of a kernel that is launched here, and of what says how many programs there are nothing is asked."""
    full = extents(LOOP, a=4, b=4)
    full.note(("a", AXIS), 9)
    repeated = full.repeated(PROGRAM)
    here = Extents()
    assert not here.unfilled((), repeated, PROGRAM)
    here.note(("a", AXIS), 1)
    assert here.unfilled((), repeated, PROGRAM)
    here.note(("a", LOOP), 1)
    assert not here.unfilled((), repeated, PROGRAM)


def test_a_side_of_a_branch_is_no_loop_without_turns() -> None:
    """Launches take it whole at full shape, and none takes it here: that is `short`, and says nothing of blocks."""
    here, full = extents(AXIS, a=1), extents(AXIS, a=1)
    full.note_side(("a", 0), True)
    repeated = full.repeated(PROGRAM)
    assert here.short(repeated, PROGRAM) == repeated == (Extent(0, SIDES + 1, 2, 2),)
    assert not here.unfilled((), repeated, PROGRAM)


def test_counts_do_not_tell_two_extents_apart() -> None:
    """At full shape other programs may be followed, with other numbers of turns."""
    assert {Extent(0, 1, 2, 2)} == {Extent(0, 1, 5, 3)}
    assert {Extent(0, 1, 2, 2)} != {Extent(0, 2, 2, 2)}


@pytest.mark.parametrize("shortens", [False, True])
def test_loops_note_all_of_their_turns(shortens: bool) -> None:
    """Also those that are not followed, because one turn stands for them. 100 in steps of 30 are 4 turns."""
    known = {"counts": Counts(), "extents": Extents(), "reuse": Reuse(), "chain": Chain()}
    machine: Any = SimpleNamespace(dry=True, shortens=shortens, last_turn=False, **known)
    For(machine, ("f", 1), Numbers(range(7), int))
    For(machine, ("f", 2), range(3))
    loop, left = While(machine, ("f", 3), "Lt", 0, 100, 30), iter([True, True, True, True, False])
    loop.goes_on(next(left))
    if not shortens:
        assert sum(loop.goes_on(more) for more in left) == 3
    full: Any = SimpleNamespace(functions=[SimpleNamespace(source="f")])
    assert [one.count for one in machine.extents.repeated(full)] == [7, 3, 4]
