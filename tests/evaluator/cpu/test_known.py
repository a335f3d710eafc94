"""Loops that end where numbers of the inputs say, while a launch is priced."""

from __future__ import annotations

import random

import numpy as np
import pytest
import triton.language as tl
from triton.runtime.interpreter import TensorHandle

from rlkernel.evaluator.cpu.known import KnownMemory
from rlkernel.evaluator.cpu.language import _range
from rlkernel.evaluator.cpu.loaded import is_known, is_loaded, know, mark
from rlkernel.evaluator.cpu.loops import For, Numbers, While
from rlkernel.evaluator.cpu.machine import Machine


def handle() -> TensorHandle:
    return TensorHandle(np.array([3], dtype=np.int32), tl.int32)


def test_a_number_is_read_by_its_offset_until_a_kernel_writes_there() -> None:
    memory = KnownMemory({2: np.array([5, 7, 9], dtype=np.int32).tobytes()})
    offsets, dtype = np.array([8, 0], dtype=np.uint64), np.dtype(np.int32)
    found = memory.load(2, offsets, dtype)
    assert found is not None and found.tolist() == [9, 5]
    assert memory.load(1, offsets, dtype) is None
    assert memory.load(2, np.array([12], dtype=np.uint64), dtype) is None  # beyond its end
    memory.forget(2)
    assert not memory and memory.load(2, offsets, dtype) is None


def test_a_value_is_known_if_all_that_is_from_memory_in_it_is() -> None:
    plain, known, unknown = handle(), know(mark(handle())), mark(handle())
    assert is_known([plain, known]) and not is_known([known, unknown])


def test_the_turn_that_stands_for_others_has_no_known_number() -> None:
    """Else a loop inside it, `for j in range(end - i)`, would cost in every turn what it costs in the last."""
    machine = Machine()
    machine.dry, machine.shortens, machine.drawn_turns = True, True, random.Random(0)

    def number(of: int) -> tl.tensor:
        return tl.tensor(know(mark(TensorHandle(np.array([of], dtype=np.int32), tl.int32))), tl.int32)

    first, last = list(For(machine, ("", 3), Numbers(range(5, 105), number, told=True)))[:2]
    assert first.handle.data.item() == 5 and is_known(first)
    assert last.handle.data.item() == 104 and is_loaded(last) and not is_known(last)


def turns_of(loop: str, numbers: list[int]) -> list[float]:
    """How many turns each of some programs is known to take: program p up to number p, by twos."""
    machine, base = Machine(), 1 << 44
    machine.map([(base, base + 4 * len(numbers))], dry=True)
    machine.known = KnownMemory({0: np.array(numbers, dtype=np.int32).tobytes()})
    machine.set_grid_dim(len(numbers), 1, 1)
    machine.kinds.begin()
    machine.kinds.follow((len(numbers), 1, 1), np.arange(len(numbers)), 1)
    machine.enter(1)
    pointer = TensorHandle(np.array([base], dtype=np.uint64), tl.pointer_type(tl.int32))
    number = machine.create_load(machine.create_addptr(pointer, machine.create_get_program_id(0)), None, None, False)
    assert number.data.tolist() == [numbers[1]] and is_known(number) and is_loaded(number)
    last = tl.tensor(number, tl.int32)
    if loop == "for":
        _range(machine, 0, last, 2)
    else:
        While(machine, ("", 3), "Lt", 0, last, 2)
    return list(machine.kinds.taken)


@pytest.mark.parametrize("loop", ["for", "while"])
def test_it_is_known_how_many_turns_other_programs_take(loop: str) -> None:
    assert turns_of(loop, [9, 4, 0, 1, 100]) == [5, 2, 0, 1, 50]
