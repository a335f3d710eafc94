"""Fixed numbers of kernels that decide at full shape alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import triton.language as tl
from triton.runtime.interpreter import TensorHandle

from rlkernel.evaluator.cpu.beyond import _differs
from rlkernel.evaluator.cpu.limits import BITS, EQUAL, LEFT, ORDER, PARTS, RIGHT, SHIFT, Limits
from rlkernel.evaluator.cpu.loaded import mark
from rlkernel.evaluator.program.schema import Function, Program


def block(*values: float) -> Any:
    data = np.array(values, dtype=np.int32)
    return tl.tensor(TensorHandle(data, tl.int32), tl.block_type(tl.int32, [len(values)]))


def hidden(full: list[tuple[Any, Any]], small: list[tuple[Any, Any]], kind: str = ORDER) -> Any:
    """What stands for the number of a comparison that was given these sides."""
    found, place = Limits(), ("kernel", 1, LEFT | RIGHT, kind)
    for dry, pairs in ((True, full), (False, small)):
        for left, right in pairs:
            found.note(place, left, right, dry=dry)
    return found.hidden().get(place)


def test_a_number_that_decides_at_full_shape_alone_is_as_much_smaller_as_what_is_held_against_it() -> None:
    assert hidden([(block(0, 4095), 1000), (block(4096, 8191), 1000)], [(block(0, 511), 1000)]) == (False, 62)
    assert hidden([(3, block(0, 7))], [(3, block(0, 1))]) == (True, 3 / 7)  # 0 of whole numbers, and above it of others
    assert hidden([(8192, 1000)], [(512, 1000)]) == (False, 62), "a size alone"
    assert hidden([(block(0, 4095), tl.constexpr(1000))], [(block(0, 511), tl.constexpr(1000))]) == (False, 124)


@pytest.mark.parametrize(
    ("full", "small", "why"),
    [
        ([(block(0, 4095), 1000)], [(block(0, 2047), 1000)], "it decides at the smaller size, too"),
        ([(block(0, 4095), 4096)], [(block(0, 511), 512)], "it is a size, and another one there"),
        ([(block(0, 4095), 5000)], [(block(0, 511), 5000)], "it never decides"),
        ([(mark(block(0, 4095)), 1000)], [(block(0, 511), 1000)], "memory decides at full shape"),
        ([(block(0, 4095), 1000), (mark(block(1)), 1000)], [(block(0, 511), 1000)], "so it does in another turn"),
        ([(block(0, 4095), 0)], [(block(0, 511), 0)], "zero is as large at any size"),
        ([(block(0, 4095), 1000)], [], "it is compared at full shape alone"),
        ([], [(block(0, 511), 1000)], "it is compared at the smaller size alone"),
        ([("name", 1000)], [("name", 1000)], "it is no number"),
    ],
)
def test_other_numbers_stay(full: list[tuple[Any, Any]], small: list[tuple[Any, Any]], why: str) -> None:
    assert hidden(full, small) is None, why


@pytest.mark.parametrize(
    ("kind", "number", "stands"),
    [(SHIFT, 10, 7), (PARTS, 1024, 128), (BITS, 1023, 127), (BITS, 1024, 128), (EQUAL, 4095, 511), (EQUAL, 1000, 125)],
)
def test_what_parts_places_at_full_shape_alone_parts_them_at_the_smaller_size(kind: str, number: int, stands: int) -> None:
    assert hidden([(block(0, 4095), number)], [(block(0, 511), number)], kind) == (False, stands)
    assert hidden([(block(0, 8191), number)], [(block(0, 4095), number)], kind) is None, "it does so there, too"
    assert hidden([(block(0, 512), number)], [(block(0, 511), number)], kind) is None, "it never does"


def test_what_parts_numbers_below_zero_is_left_alone() -> None:
    assert hidden([(block(-5, 4095), 1023)], [(block(-5, 511), 1023)], BITS) is None
    assert hidden([(block(0, 4095), 0xF0)], [(block(0, 15), 0xF0)], BITS) is None, "bits between others are no limit"


def test_an_axis_that_is_as_long_at_the_smaller_size_is_no_fixed_number() -> None:
    found, place = Limits(), ("kernel", 1, RIGHT, PARTS)
    for high, dry in ((255, True), (15, False)):
        found.note(place, block(0, high), 16, dry=dry)
    assert found.hidden()
    found.note_shapes([(1, 16, 40, 8)])
    assert not found.hidden()


def test_what_the_first_sizes_do_not_tell_is_left_to_longer_ones() -> None:
    program = Program((Function("kernel", "kernel", 1, {}),), (), (), {}, (), (), (), 0)
    first, place = Limits(), ("kernel", 1, LEFT | RIGHT, ORDER)
    for step in (0, 1024, 7168):
        first.note(place, step, 4096, dry=True)
    first.note(place, 0, 4096, dry=False)  # a loop of one turn
    first.note(("kernel", 2, RIGHT, ORDER), block(0, 8191), 100, dry=True)  # which is made there alone
    first.note(("kernel", 3, RIGHT, ORDER), block(0, 8191), 4096, dry=True)
    first.note(("kernel", 3, RIGHT, ORDER), block(0, 149), 4096, dry=False)  # which the first sizes tell
    first.note(("kernel", 4, RIGHT, ORDER), mark(block(0, 8191)), 4096, dry=True)  # which memory decides
    assert first.hidden() == {("kernel", 3, RIGHT, ORDER): (False, 74)}
    held = first.untold(program)
    assert [one.number for one in held] == [1, 2]
    longer = Limits.left_by(held, program)
    for step in (0, 1024, 2048, 3072):
        longer.note(place, step, 4096, dry=False)
    assert longer.hidden() == {place: (False, 1755)}


def test_results_differ_where_more_than_roundings_do() -> None:
    one = torch.ones(100)
    assert not _differs(one, one * 1.01)
    assert _differs(one, one * 1.1)
    assert _differs(one, one.half()) and _differs(one, one[:99])
    assert _differs(one, torch.where(torch.arange(100) == 3, torch.inf, one))
    gone = torch.where(torch.arange(100) == 3, torch.nan, one)
    assert not _differs(gone, gone.clone())
