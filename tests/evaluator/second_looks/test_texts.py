"""What a candidate's text says of sizes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlkernel.evaluator.second_looks.texts import has_small_sizes, repeated_sizes, without_asserts
from tests.evaluator.second_looks.doubles import (
    PROBLEM,
)


def test_kernels_keep_their_asserts_and_lines_their_numbers() -> None:
    code = "@triton.jit\ndef k(n):\n    assert n\n\ndef f(x):\n    assert x == (\n        8)\n    g(x)\n"
    assert without_asserts(code) == "@triton.jit\ndef k(n):\n    assert n\n\ndef f(x):\n    pass\n\n    g(x)\n"
    assert without_asserts("not Python (") == "not Python ("


@pytest.mark.parametrize(
    ("code", "repeated"),
    [
        ("x = 8192", {8192}),
        ("x = 8192\ny = 4096", {4096, 8192}),
        ("COLS = 8192\nBLOCK = 128", set()),
        ("# 8192 columns", set()),
        ("mean = total / 8192.0", {8192}),
        ("mean = total * 0.0001220703125", {8192}),  # 1 / 8192
        ("scale = 0.01105", {8192}),  # 1 / sqrt(8192), rounded
        ("scale = 0.0112", set()),
        (f"x = {10**400}", set()),
        ("not Python (", set()),
    ],
)
def test_sizes_that_a_text_repeats(code: str, repeated: set[int]) -> None:
    """A size of the full shape as a number, but where the constant has the reference's name and is small with it."""
    assert repeated_sizes(PROBLEM, code) == repeated


def test_a_number_that_is_a_size_is_not_made_of_another_one() -> None:
    """128 is the root of 16,384, and the number of columns."""
    problem = replace(PROBLEM, source="SLOTS, COLS = 16384, 128\nSMALL = {'SLOTS': 64, 'COLS': 32}\n")
    assert (repeated_sizes(problem, "x = 128"), repeated_sizes(problem, "x = 1 / 16384")) == ({128}, {16384})


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("x + row * 96", True),
        ("x + row * (90 + 6)", True),
        ("x + 16 * 96", True),  # all elements
        ("COLS = 8192", False),
        ("grid = (4096, 33554432)", False),
        ("x * 96.5 + 4", False),
        ("# 96 columns", False),
        ("not Python (", False),
    ],
)
def test_sizes_of_the_first_look_that_a_text_has(code: str, found: bool) -> None:
    """16 rows of 96 for 4096 of 8192; a tile of 4 says nothing."""
    assert has_small_sizes(PROBLEM, code, {4096: (16,), 8192: (96,), 33554432: (1536,), 4: (4,)}) is found
