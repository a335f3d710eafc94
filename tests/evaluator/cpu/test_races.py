"""Programs that touch the same memory: which orders matter, what an atomic orders, and what is left alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlkernel.evaluator.cpu import races as room
from rlkernel.evaluator.cpu.races import Race, Races, TooManyAtomics

MEMORY = np.zeros(64, dtype=np.float32)
START = MEMORY.ctypes.data
FLAG = 40
"""A word that serves as a flag or lock; words from 48 on are those of atomics on data."""


class Programs(Races):
    """Races of 4-byte words that tests name by their number."""

    def reads(self, program: int, *words: int, volatile: bool = False) -> None:
        self.enter(program)
        self.read(0, at(*words), 4, volatile=volatile)

    def writes(self, program: int, *words: int, value: float = 5.0) -> None:
        self.enter(program)
        self.write(0, at(*words), 4, lambda: np.full(len(words), value, dtype=np.float32))
        MEMORY[list(words)] = value

    def flags(self, program: int, word: int = FLAG, *, acquires: bool = True, releases: bool = True) -> None:
        self.enter(program)
        self.atomic(0, at(word), 4, acquires=acquires, releases=releases)

    def adds(self, program: int, *words: int) -> None:
        self.enter(program)
        self.atomic(0, at(*words), 4, acquires=True, releases=True)


def at(*words: int, width: int = 4) -> np.ndarray:
    return np.array([START + width * e for e in words], dtype=np.uint64)


@pytest.fixture
def races() -> Programs:
    MEMORY[:] = 0
    return Programs([(START, START + MEMORY.nbytes)])


def test_reading_what_another_program_wrote(races: Programs) -> None:
    races.writes(0, 1, 2)
    races.reads(0, 1, 2)
    races.reads(1, 3)
    with pytest.raises(Race, match="program 1 reads what program 0 wrote without atomics"):
        races.reads(1, 2)


def test_overwriting_what_another_program_read_or_wrote(races: Programs) -> None:
    races.reads(0, 1)
    races.writes(0, 1)
    races.writes(1, 1)  # the same value: no order matters
    races.reads(2, 7)
    races.reads(3, 7)
    with pytest.raises(Race, match="program 2 overwrites what another used"):
        races.writes(2, 7)
    with pytest.raises(Race, match="program 4 overwrites what program 0 used"):
        races.writes(4, 1, value=6)


def test_programs_of_their_own_elements_do_not_race(races: Programs) -> None:
    for program in range(200):
        races.reads(program, program % 64)
        races.reads(program, *range(64))
    races = Programs([(START, START + MEMORY.nbytes)])
    for program in range(32):
        races.reads(program, program, 32 + program)
        races.writes(program, program)


def test_accesses_of_other_widths_meet(races: Programs) -> None:
    races.writes(0, 1)
    races.enter(1)
    races.read(0, at(0, width=2), 2)
    with pytest.raises(Race):
        races.read(0, at(3, width=2), 2)  # the upper half of word 1
    races.write(0, at(20, width=1), 1, lambda: np.ones(1, dtype=np.int8))
    races.enter(2)
    races.read(0, at(3, width=8), 8)
    with pytest.raises(Race):
        races.read(0, at(2, width=8), 8)  # bytes 16 to 23


@pytest.mark.parametrize(
    "beside", [lambda races: races.flags(0), lambda races: races.adds(0, 50, 51), lambda races: races.adds(1, 50, 51)]
)
def test_an_atomic_elsewhere_excuses_nothing(races: Programs, beside: Callable[[Programs], None]) -> None:
    races.writes(0, 1)
    beside(races)
    with pytest.raises(Race, match="without an atomic that orders them"):
        races.reads(1, 1)


def test_a_flag_orders_what_came_before_it_and_no_more(races: Programs) -> None:
    races.writes(0, 1)
    races.flags(0)
    races.writes(0, 2)
    races.flags(1)
    races.reads(1, 1)
    races.writes(1, 1, value=6)
    with pytest.raises(Race):
        races.reads(1, 2)


def test_order_is_handed_on(races: Programs) -> None:
    races.writes(0, 1)
    races.flags(0, 40)
    races.flags(1, 40)
    races.flags(1, 41)
    races.reads(2, 41)  # a flag that is read: not an atomic, but a wait
    races.writes(2, 1, value=7)


@pytest.mark.parametrize(("releases", "acquires"), [(False, True), (True, False), (False, False)])
def test_relaxed_atomics_order_nothing(races: Programs, releases: bool, acquires: bool) -> None:
    races.writes(0, 1)
    races.flags(0, releases=releases)
    races.flags(1, acquires=acquires)
    with pytest.raises(Race):
        races.reads(1, 1)


def test_a_program_that_comes_back_knows_what_it_knew(races: Programs) -> None:
    races.writes(0, 1)
    races.flags(0)
    races.flags(1)
    races.writes(2, 2)
    races.reads(1, 1)
    races.writes(0, 3)
    with pytest.raises(Race):
        races.reads(1, 3)


def test_the_last_that_comes_reads_what_all_have_added(races: Programs) -> None:
    for program in range(5):
        races.reads(program, 3)
        races.adds(program, 50, 51)
        races.flags(program)
    races.reads(4, 50, 51)
    races.writes(4, 3)
    with pytest.raises(Race, match="program 3 reads what another wrote"):
        races.reads(3, 50, 51)


def test_adding_to_what_another_program_stores(races: Programs) -> None:
    races.writes(0, 50)
    with pytest.raises(Race, match="program 1 changes what program 0 used"):
        races.adds(1, 50, 51)


def test_a_loop_of_exchanges_reads_what_does_not_matter(races: Programs) -> None:
    for program in range(3):
        races.reads(program, FLAG)
        races.flags(program)
        races.flags(program)


def test_no_storage_is_too_large_to_be_followed() -> None:
    large = Programs([(START, START + (1 << 30))])
    large.reads(0, 1 << 27)
    large.writes(0, 1)
    with pytest.raises(Race, match="program 1 reads what program 0 wrote"):
        large.reads(1, 1)


@pytest.mark.parametrize(("name", "most"), [("MAX_BITS", 6), ("MAX_SEGMENTS", 5)])
def test_what_has_too_many_segments_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, most: int) -> None:
    monkeypatch.setattr(room, name, most)
    flagged = Programs([(START, START + 256)])
    flagged.writes(0, 0)
    flagged.flags(0, 40)  # segment 3, after 2: 3 bits for each of one word
    flagged.writes(1, 1)
    with pytest.raises(TooManyAtomics):
        flagged.flags(1, 41)


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 2)), min_size=2, max_size=12))
def test_elements_of_one_store_agree_where_they_meet(elements: list[tuple[int, int]]) -> None:
    memory = np.zeros(8, dtype=np.float32)
    races = Races([(memory.ctypes.data, memory.ctypes.data + memory.nbytes)])
    races.enter(0)
    words, values = np.array([e[0] for e in elements]), np.array([e[1] for e in elements], dtype=np.float32)
    memory[words] = values
    addresses = memory.ctypes.data + 4 * words.astype(np.uint64)
    if len(set(elements)) == len(set(words.tolist())):
        races.stored(addresses, lambda: values)
    else:
        with pytest.raises(Race, match="several elements of one store write different values"):
            races.stored(addresses, lambda: values)
