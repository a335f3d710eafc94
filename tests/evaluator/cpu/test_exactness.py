"""Whole numbers that a conversion of a kernel does not hold."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import triton.language as tl
from triton.runtime.interpreter import TensorHandle

from rlkernel.evaluator.cpu.exactness import note
from rlkernel.evaluator.cpu.extents import Extents, is_lost, is_side
from rlkernel.evaluator.cpu.kinds import Kinds
from rlkernel.evaluator.cpu.loaded import mark

TYPES = {
    tl.float16: torch.float16, tl.bfloat16: torch.bfloat16, tl.float32: torch.float32, tl.int8: torch.int8, tl.uint8: torch.uint8,
    tl.int16: torch.int16,
}  # fmt: skip
PROGRAM: Any = SimpleNamespace(functions=[SimpleNamespace(source="a")])


def lost(numbers: Any, source: Any, target: Any, *, dry: bool = False, loaded: bool = False, last_turn: bool = False) -> Any:
    machine = SimpleNamespace(dry=dry, last_turn=last_turn, kinds=Kinds(), lost={})
    handle = TensorHandle(np.asarray(numbers), source)
    with np.errstate(all="ignore"):  # as where a kernel runs
        note(machine, mark(handle) if loaded else handle, target)
    return machine.lost.get(0)


@pytest.mark.parametrize("target", TYPES)
def test_what_is_lost_is_what_does_not_come_back(target: Any) -> None:
    """Of many ranges, the largest whole number that torch does not give back either."""
    draws = np.random.default_rng(0)
    for bits in range(1, 31):
        numbers = draws.integers(0, 1 << bits, size=64, dtype=np.int32)
        back = torch.from_numpy(numbers).to(TYPES[target]).to(torch.float64).numpy()
        there = numbers[back != numbers]
        found = lost(numbers, tl.int32, target)
        assert (found[0] if found else 0) == (there.max() if there.size else 0)
        assert found is None or found[1] <= there.min()


def test_numbers_that_are_no_whole_ones_and_types_that_hold_more_lose_nothing() -> None:
    assert lost(np.float32([3000.5, 70000.25]), tl.float32, tl.float16) is None
    assert lost(np.float32([3001.0]), tl.float32, tl.float16) == (3001, 2049)
    assert lost(np.int32([1 << 30]), tl.int32, tl.int64) is None
    assert lost(np.int32([-1]), tl.int32, tl.uint32) is None
    assert lost(np.float32([np.nan, np.inf]), tl.float32, tl.bfloat16) is None


def test_what_memory_tells_is_not_known_at_full_shape_but_in_a_turn_that_stands_for_others() -> None:
    numbers = np.int32([3001])
    assert lost(numbers, tl.int32, tl.float16, dry=True) == lost(numbers, tl.int32, tl.float16, loaded=True) == (3001, 2049)
    assert lost(numbers, tl.int32, tl.float16, dry=True, loaded=True) is None
    assert lost(numbers, tl.int32, tl.float16, dry=True, loaded=True, last_turn=True) == (3001, 2049)


def test_a_conversion_is_short_until_it_does_not_hold_a_number_here_either() -> None:
    full, here = Extents(), Extents()
    full.note_lost("a", 7, 8191, 2049)
    (short,) = here.short(full.repeated(PROGRAM), PROGRAM)
    assert (short.count, short.enough) == (8191, 2049)
    assert is_lost(short.place) and not is_side(short.place)
    here.note_lost("a", 7, 2051, 2049)
    assert here.short(full.repeated(PROGRAM), PROGRAM) == ()
