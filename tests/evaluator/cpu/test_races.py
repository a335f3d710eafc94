"""Programs that touch the same memory: which orders matter, and what is left alone."""

from __future__ import annotations

import numpy as np
import pytest

from rlkernel.evaluator.cpu.races import Race, Races

MEMORY = np.zeros(64, dtype=np.float32)
START = MEMORY.ctypes.data


def at(*elements: int) -> tuple[np.ndarray, np.ndarray]:
    return np.array([START + 4 * e for e in elements], dtype=np.uint64), np.zeros(len(elements), dtype=np.int64)


def values(*numbers: float) -> np.ndarray:
    return np.array(numbers, dtype=np.float32)


@pytest.fixture
def races() -> Races:
    MEMORY[:] = 0
    return Races([(START, START + MEMORY.nbytes)])


def test_reading_what_another_program_wrote(races: Races) -> None:
    races.write(*at(1, 2), 0, values(5, 6))
    races.read(*at(1, 2), 0)
    races.read(*at(3), 1)
    with pytest.raises(Race, match="program 1 reads what program 0 wrote without atomics"):
        races.read(*at(2), 1)


def test_overwriting_what_another_program_read_or_wrote(races: Races) -> None:
    races.read(*at(1), 0)
    races.write(*at(1), 0, values(5))
    MEMORY[1] = 5
    races.write(*at(1), 1, values(5))  # the same value: no order matters
    races.read(*at(7), 2)
    races.read(*at(7), 3)
    with pytest.raises(Race, match="program 2 overwrites what another used"):
        races.write(*at(7), 2, values(1))
    with pytest.raises(Race, match="program 4 overwrites what program 1 used"):
        races.write(*at(1), 4, values(6))


def test_programs_of_their_own_elements_do_not_race(races: Races) -> None:
    for program in range(8):
        races.read(*at(program, 32 + program), program)
        races.write(*at(program), program, values(program + 1))


def test_atomics_end_the_watch(races: Races) -> None:
    races.write(*at(1), 0, values(5))
    races.give_up()
    races.read(*at(1), 1)
