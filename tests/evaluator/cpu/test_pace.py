"""How much the interpreter has to do: a launch is given up as soon as its first programs tell that it is too much."""

from __future__ import annotations

import numpy as np
import pytest
import triton.language as tl
from triton.runtime.interpreter import TensorHandle

from rlkernel.evaluator.cpu.pace import ELEMENTS, LOOK_AFTER, Pace, TooMuchWork


def work(pace: Pace, operations: int) -> None:
    for _ in range(operations):
        pace.add(None)


def test_an_operation_counts_one_and_its_elements_besides() -> None:
    pace = Pace(100.0)
    pace.add(None)
    pace.add(TensorHandle(np.zeros(3 * ELEMENTS, dtype=np.float32), tl.float32))
    assert pace.work == 1 + 1 + 3


def test_a_launch_is_given_up_when_a_few_programs_tell_that_it_is_too_much() -> None:
    """100 programs of 20 operations are 2,000 of 1,000 that there may be: seen after LOOK_AFTER programs."""
    pace = Pace(1000.0)
    pace.launch(100)
    for _ in range(LOOK_AFTER - 1):
        work(pace, 20)
        pace.ended()
    work(pace, 20)
    with pytest.raises(TooMuchWork):
        pace.ended()


def test_launches_add_up_and_one_long_program_is_too_much() -> None:
    pace = Pace(1000.0)
    for _ in range(3):
        pace.launch(10)
        for _ in range(10):
            work(pace, 30)  # 300 per launch, 900 in all
            pace.ended()
    pace.launch(1)
    with pytest.raises(TooMuchWork):
        work(pace, 101)
