"""What operations cost on the general units of a card, where an addition costs 1 and a multiply-add 2."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton.language as tl
from triton.runtime.interpreter import TensorHandle

from rlkernel.evaluator.cpu import patches
from rlkernel.evaluator.cpu.language import the_machine
from rlkernel.evaluator.cpu.machine import Machine
from rlkernel.evaluator.devices import PROFILES
from rlkernel.evaluator.judging.costs.counts import Counts
from rlkernel.evaluator.judging.costs.special import special_of


def block(dtype: Any, numpy: Any) -> TensorHandle:
    return TensorHandle(np.full(64, 3, dtype=numpy), dtype)


FLOATS, DOUBLES = block(tl.float32, np.float32), block(tl.float64, np.float64)
WHOLE, LONG = block(tl.int32, np.int32), block(tl.int64, np.int64)


@pytest.mark.parametrize(
    ("name", "operands", "each"),
    [
        ("create_fadd", (FLOATS, FLOATS), 1.0), ("create_fadd", (DOUBLES, DOUBLES), 2.0), ("create_add", (WHOLE, WHOLE), 2.0),
        ("create_add", (LONG, LONG), 4.0), ("create_shl", (LONG, LONG), 4.0), ("create_xor", (LONG, LONG), 4.0),
        ("create_mul", (LONG, LONG), 12.0), ("create_mul", (WHOLE, WHOLE), 2.0),
        ("create_exp", (FLOATS,), 16.0), ("create_log2", (FLOATS,), 16.0), ("create_sqrt", (FLOATS,), 16.0),
        ("create_rsqrt", (FLOATS,), 16.0), ("create_fdiv", (FLOATS, FLOATS), 20.0),
        ("create_precise_divf", (FLOATS, FLOATS), 20.0), ("create_floor", (FLOATS,), 4.0), ("create_erf", (FLOATS,), 32.0),
        ("create_sin", (FLOATS,), 32.0), ("create_cos", (FLOATS,), 32.0), ("create_idiv", (WHOLE, WHOLE), 8.0),
        ("create_srem", (WHOLE, WHOLE), 8.0), ("create_srem", (LONG, LONG), 32.0),
    ],
)  # fmt: skip
def test_functions_take_longer_than_additions_and_are_one_operation_each(
    name: str, operands: tuple[TensorHandle, ...], each: float
) -> None:
    machine = Machine()
    machine.counts = Counts()
    getattr(machine, name)(*operands)
    assert (machine.counts.flops, machine.counts.operations) == (each * 64, 64.0)


@pytest.mark.parametrize("dry", [True, False])
def test_a_watch_for_overflow_is_no_work(dry: bool) -> None:
    """Triton's interpreter adds again in 64 bits for an assertion, which no GPU runs: that would be 8 operations."""
    with patches.taken_back():  # other tests of this process compile
        machine, semantic = the_machine()
        machine.map([], dry=dry)
        machine.counts = Counts()
        one = tl.tensor(WHOLE, tl.block_type(tl.int32, [64]))
        semantic.add(one, one, True)
    assert (machine.counts.flops, machine.counts.operations) == (2.0 * 64, 64.0)


def test_a_special_function_takes_what_the_card_makes_of_it() -> None:
    """16 in a cycle of each processor, which has 128 multiply-adds in it; an A100 has 64 of these."""
    expected = {"h200": 16.0, "h100": 16.0, "l40s": 16.0, "rtx4090": 16.0, "b200": 16.0, "a100": 8.0}
    found = {name: special_of(profile) for name, profile in PROFILES.items()}
    assert found == pytest.approx(expected, rel=0.05)
