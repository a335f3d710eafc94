"""The sizes of a reference file that makes its inputs in functions of its own."""

from __future__ import annotations

from rlkernel.evaluator.judging.sizes.hoisting import hoisted
from rlkernel.evaluator.judging.sizes.made_inputs import batch_names, free_names

SOURCE = """
import torch
rows = 512
def drawn(*shape, seed=64):
    return torch.rand(*shape)
def pair():
    columns = 4096
    return drawn(rows, columns), drawn(columns)
def other():
    return 1024
def get_inputs():
    return list(pair())
def get_init_inputs():
    return []
"""


def test_numbers_of_functions_that_get_inputs_calls_are_sizes() -> None:
    """Not those of other functions, nor defaults, which are evaluated before the file ends."""
    found = hoisted(SOURCE)
    assert "    columns = SIZE_4096\n" in found and "SIZE_4096 = 4096\n" in found
    assert "seed=64" in found and "return 1024" in found


def test_names_count_where_get_inputs_calls_a_function() -> None:
    assert {"rows", "columns"} <= free_names(SOURCE)
    assert "rows" in batch_names(SOURCE)
