"""Other values of the sizes at which a candidate is right."""

from __future__ import annotations

from rlkernel.evaluator.devices import H200
from rlkernel.evaluator.judging.sizes.resizing import Sizes
from rlkernel.evaluator.judging.sizes.varying import varied
from rlkernel.reference_text import small_of
from rlkernel.types import Problem

SOURCE = """
import torch
import torch.nn as nn
rows, columns = {full}
SMALL = {small}
class Model(nn.Module):
    def forward(self, x):
        return x.sum(1)
def get_inputs():
    return [torch.rand(rows, columns)]
def get_init_inputs():
    return []
"""


def looks(full: tuple[int, int], small: Sizes) -> list[Sizes]:
    found = varied(Problem("p", 1, "train", SOURCE.format(full=full, small=small)), H200)
    assert all(small_of(one.source) == one.sizes for one in found)
    return [dict(one.sizes) for one in found]


def test_all_sizes_are_doubled_or_halved_and_then_each_is() -> None:
    """Columns also at the price of rows, which then have their own turn; of these, three quarters come first."""
    assert looks((4096, 8192), {"rows": 16, "columns": 96}) == [
        {"rows": 32, "columns": 192}, {"rows": 8, "columns": 48},
        {"rows": 4, "columns": 192}, {"rows": 16, "columns": 192}, {"rows": 16, "columns": 48},
        {"rows": 12, "columns": 96}, {"rows": 32, "columns": 96}, {"rows": 8, "columns": 96},
    ]  # fmt: skip


def test_one_size_after_the_other_is_as_at_full_shape_the_most_reduced_one_first() -> None:
    """96 of 8192 columns are a smaller part than 64 of 4096 rows."""
    problem = Problem("p", 1, "train", SOURCE.format(full=(4096, 8192), small={"rows": 64, "columns": 96}))
    assert [dict(one.sizes) for one in varied(problem, H200, whole=True)] == [
        {"rows": 64, "columns": 8192}, {"rows": 16, "columns": 8192},
        {"rows": 4096, "columns": 96}, {"rows": 4096, "columns": 24},
    ]  # fmt: skip


def test_what_is_as_at_full_shape_stays_and_no_size_is_larger() -> None:
    assert looks((4096, 96), {"rows": 16, "columns": 96})[:2] == [{"rows": 32, "columns": 96}, {"rows": 8, "columns": 96}]
    assert looks((24, 8192), {"rows": 16, "columns": 96})[0] == {"rows": 24, "columns": 192}
    assert looks((4096, 8192), {"rows": 4096, "columns": 8192}) == []


def test_sizes_that_differ_stay_different() -> None:
    """32 rows alone are as many as columns, and so are 16 columns alone."""
    assert looks((4096, 8192), {"rows": 16, "columns": 32}) == [
        {"rows": 32, "columns": 64}, {"rows": 8, "columns": 16},
        {"rows": 4, "columns": 64}, {"rows": 16, "columns": 64},
        {"rows": 12, "columns": 32}, {"rows": 8, "columns": 32},
    ]  # fmt: skip


def test_what_is_too_much_work_is_left_out() -> None:
    """8 million elements are 16 times what is comfortable, and 2 million are 4 times that."""
    assert looks((8192, 8192), {"rows": 2048, "columns": 1024})[0] == {"rows": 1024, "columns": 512}


BATCHES = """
import torch
import torch.nn as nn
batch, rows, end = 8, 1024, {end}
SMALL = {small}
class Model(nn.Module):
    def forward(self, x, end):
        return x[:, 3:end] * 2
def get_inputs():
    return [torch.rand(batch, rows, rows), end]
def get_init_inputs():
    return []
"""


def batches(end: int, small: Sizes) -> list[Sizes]:
    return [dict(one.sizes) for one in varied(Problem("p", 1, "train", BATCHES.format(end=end, small=small)), H200)]


def test_a_batch_that_was_not_made_smaller_pays_for_another_value() -> None:
    """512 rows of all eight are 8 million numbers with their products; of two, 2 million."""
    found = batches(1024, {"rows": 512})
    assert {"rows": 1024, "batch": 2} in found
    assert {"rows": 1024} not in found


def test_a_place_in_an_axis_stays_in_it() -> None:
    """1,000 of 1,024 rows end at 62 of 64; where there are 32, the end is at 31, and where it is at 124, there are 128."""
    found = batches(1000, {"rows": 64, "end": 62})
    assert {"rows": 128, "end": 124} in found
    assert found and all(one["end"] < one["rows"] for one in found)
