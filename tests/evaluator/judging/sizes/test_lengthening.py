"""Longer sizes for a second look."""

from __future__ import annotations

import pytest
import torch

from rlkernel.evaluator.devices import H200
from rlkernel.evaluator.judging.costs import needs
from rlkernel.evaluator.judging.sizes.lengthening import MOST_BURDEN, filling, lengthened
from rlkernel.evaluator.judging.sizes.resizing import Sizes
from rlkernel.evaluator.judging.sizes.size_search import INTERPRETED_ELEMENTS
from rlkernel.reference_text import small_of
from rlkernel.types import Problem

SOURCE = """
import torch
import torch.nn as nn
rows, columns = {full}
SMALL = {small}
class Model(nn.Module):
    def forward(self, {arguments}):
        return {forward}
def get_inputs():
    return [{inputs}]
def get_init_inputs():
    return []
"""


def looks(full: tuple[int, int], small: Sizes, forward: str = "x.sum(1)", halvings: int = 0) -> list[Sizes]:
    """The sizes of the second looks at a problem of rows and columns."""
    source = SOURCE.format(full=full, small=small, arguments="x", forward=forward, inputs="torch.rand(rows, columns)")
    found = lengthened(Problem("p", 1, "train", source), H200, halvings)
    assert all(small_of(one.source) == one.sizes for one in found)
    return [dict(one.sizes) for one in found]


def test_columns_are_long_and_then_rows() -> None:
    """Both as at full shape, with the other as it was; or halved twice."""
    small = {"rows": 8, "columns": 96}
    assert looks((4096, 8192), small) == [{"rows": 8, "columns": 8192}, {"rows": 4096, "columns": 96}]
    assert looks((4096, 8192), small, halvings=2) == [{"rows": 8, "columns": 2048}, {"rows": 1024, "columns": 96}]


def filled(full: tuple[int, int], small: Sizes) -> list[Sizes]:
    """The sizes that fill blocks of a problem of rows and columns."""
    source = SOURCE.format(full=full, small=small, arguments="x", forward="x.sum(1)", inputs="torch.rand(rows, columns)")
    return [dict(one.sizes) for one in filling(Problem("p", 1, "train", source), H200)]


def test_sizes_that_fill_blocks_leave_the_remainder_by_128_of_the_full_ones() -> None:
    """32000 is a multiple of 128, and 50257 is one and 81; sizes that differ stay different, those below 128 as they are."""
    assert filled((4096, 32000), {"rows": 64, "columns": 250})[0] == {"rows": 128, "columns": 256}
    assert filled((640, 50257), {"rows": 16, "columns": 196})[0] == {"rows": 128, "columns": 209}
    assert filled((128, 256), {"rows": 128, "columns": 256}) == []


def test_the_full_shape_comes_first_where_it_is_little_enough_work() -> None:
    """64 x 50257 are six times what is comfortable, 640 rows sixty times."""
    assert filled((64, 50257), {"rows": 16, "columns": 196})[:2] == [
        {"rows": 64, "columns": 50257},
        {"rows": 64, "columns": 209},
    ]


def test_blocks_of_rows_are_filled_after_tiles() -> None:
    """32000 is a multiple of 1024, and 256. 1024 x 1280 are 2.5 times the elements, and their sums."""
    assert filled((4096, 32000), {"rows": 64, "columns": 250})[1:] == [{"rows": 1024, "columns": 1280}]


def test_what_fills_no_block_at_full_shape_is_small_where_blocks_are_too_much_work() -> None:
    """16 x 32 x 256 x 128 are 2^24 elements, and 2^22 with few of the 16; with 8 of the 32 they are 2^20, and their squares."""
    source = """
import torch
import torch.nn as nn
batch, heads, keys, channels = 16, 32, 4096, 128
SMALL = {"batch": 4, "heads": 8, "keys": 32, "channels": 16}
class Model(nn.Module):
    def forward(self, x):
        return x * x
def get_inputs():
    return [torch.rand(batch, heads, keys, channels)]
def get_init_inputs():
    return []
"""
    first = filling(Problem("p", 1, "train", source), H200)[0]
    assert first.sizes == {"batch": 4, "heads": 8, "keys": 256, "channels": 128}


def test_where_blocks_of_128_are_too_much_work_smaller_ones_are_filled() -> None:
    """Of 2^21 elements at most, twice the input's: of 128^3 these are too many, and 64^3 are not. All are equal at full shape."""
    source = """
import torch
import torch.nn as nn
a, b, c = 2048, 2048, 2048
SMALL = {"a": 50, "b": 50, "c": 50}
class Model(nn.Module):
    def forward(self, x):
        return x * 2
def get_inputs():
    return [torch.rand(a, b, c)]
def get_init_inputs():
    return []
"""
    (one,) = filling(Problem("p", 1, "train", source), H200)
    assert one.sizes in ({"a": 64, "b": 64, "c": 64}, {"a": 50, "b": 128, "c": 128})


def test_the_rest_pays_for_what_is_long() -> None:
    """4 x 2^19 elements may be. A 64th of 256 rows are 4: of 2^19 columns each these are a little too many with their sums, of
    2^18 they are not. Of 4096 rows there may be 256 columns, and not 512, which are too many with their sums."""
    assert MOST_BURDEN * INTERPRETED_ELEMENTS == 1 << 21
    long = looks((4096, 1 << 20), {"rows": 256, "columns": 512})
    assert long == [{"rows": 4, "columns": 1 << 18}, {"rows": 4096, "columns": 256}]


def test_nothing_is_longer_than_the_full_shape() -> None:
    """A file without smaller sizes, and sizes that are halved until they are no longer than they were."""
    assert looks((64, 64), {}) == []
    assert looks((64, 64), {"rows": 32}) == [{"rows": 64}]
    assert looks((64, 64), {"rows": 32}, halvings=1) == []


def test_a_size_at_which_the_reference_does_other_work_is_none() -> None:
    """Beyond 100 columns forward calls another operator, at full shape it does not."""
    forward = "torch.relu(x) if x.shape[1] in (96, 8192) else torch.tanh(x)"
    assert looks((8, 8192), {"columns": 96}, forward, halvings=1) == []
    assert looks((8, 8192), {"columns": 96}, forward) == [{"columns": 8192}]


def test_what_is_made_smaller_has_a_control() -> None:
    """The same sizes with what is long as it was at first."""
    source = SOURCE.format(
        full=(4096, 1 << 20), small={"rows": 256, "columns": 512}, arguments="x", forward="x * 2",
        inputs="torch.rand(rows, columns)",
    )  # fmt: skip
    first, second = lengthened(Problem("p", 1, "train", source), H200)
    assert first.beside is not None
    assert small_of(first.beside) == first.sizes | {"columns": 512}
    assert second.beside is None or small_of(second.beside) == second.sizes | {"rows": 256}


def test_a_lighter_look_keeps_what_is_long() -> None:
    source = SOURCE.format(
        full=(4096, 8192), small={"rows": 512, "columns": 96}, arguments="x", forward="x * 2", inputs="torch.rand(rows, columns)"
    )
    first, second = lengthened(Problem("p", 1, "train", source), H200, halvings=2)
    assert first.sizes["columns"] == 2048 and first.lighter is not None
    assert first.lighter.sizes == {"rows": first.sizes["rows"] // 8, "columns": 2048} == small_of(first.lighter.source)
    assert second.lighter is not None and second.lighter.sizes == {"rows": second.sizes["rows"], "columns": 12}


HEADS = """
import torch
import torch.nn as nn
batch, heads, keys, channels = 32, 32, 512, 1024
SMALL = {"batch": 4, "keys": 8, "channels": 16}
class Model(nn.Module):
    def forward(self, q, k):
        return q @ k.transpose(-1, -2)
def get_inputs():
    return [torch.rand(batch, heads, keys, channels), torch.rand(batch, heads, keys, channels)]
def get_init_inputs():
    return []
"""


def test_a_lighter_look_keeps_even_numbers_even() -> None:
    """Frames of 200 samples every 80, with half of a frame on both sides: as many frames as steps, less the last one. With frames
    of 25 there is one less, and a kernel that counts steps would have another shape. Frames of 26 have it right."""
    text = """
import torch
import torch.nn as nn
SAMPLES, FRAME, STEP = 65536, 400, 160
SMALL = {"SAMPLES": 1600, "FRAME": 200, "STEP": 80}
class Model(nn.Module):
    def forward(self, x):
        half = FRAME // 2
        return nn.functional.pad(x, (half, half)).unfold(1, FRAME, STEP)[:, :-1] * 2.0
def get_inputs():
    return [torch.rand(8, SAMPLES)]
def get_init_inputs():
    return []
"""
    looks = [one.lighter.sizes for one in lengthened(Problem("x", 1, "train", text), H200, 0, heads_pay=False) if one.lighter]
    assert {sizes["FRAME"] for sizes in looks if "FRAME" in sizes} == {26, 400}  # 400 in the look in which frames are long


def test_a_lighter_look_has_fewer_heads_where_nothing_else_is_left() -> None:
    """Of two matrices of four keys there is nothing left to divide."""
    found = lengthened(Problem("p", 1, "train", HEADS), H200)
    lighter = [
        one.lighter.sizes for one in found if one.lighter is not None and one.sizes["batch"] == 2 and one.sizes["keys"] <= 4
    ]
    assert lighter and all(sizes["heads"] == 4 and sizes["channels"] == 1024 for sizes in lighter)


IMAGES = """
import torch
import torch.nn as nn
batch, channels, rows, columns = 16, 32, 512, 512
SMALL = {"batch": 2, "channels": 4, "rows": 8, "columns": 8}
class Model(nn.Module):
    def forward(self, x):
        return x * 2
def get_inputs():
    return [torch.rand(batch, channels, rows, columns)]
def get_init_inputs():
    return []
"""


def test_as_many_images_as_at_full_shape_fill_the_blocks_of_a_kernel_that_goes_over_all_elements() -> None:
    *_, last = filling(Problem("p", 1, "train", IMAGES), H200)
    assert last.sizes == {"batch": 16, "channels": 32, "rows": 8, "columns": 8}


def test_a_lighter_look_has_four_rows_where_there_are_so_many() -> None:
    """Of 24 rows an eighth would be 3, and of three a third stays."""
    for rows, left in ((24, 4), (3, 3)):
        source = SOURCE.format(
            full=(4096, 8192), small={"rows": rows, "columns": 96}, arguments="x", forward="x * 2",
            inputs="torch.rand(rows, columns)",
        )  # fmt: skip
        (first, *_) = lengthened(Problem("p", 1, "train", source), H200, halvings=2)
        assert first.sizes["rows"] == rows and (first.lighter is None if left == rows else first.lighter is not None)
        if first.lighter is not None:
            assert first.lighter.sizes["rows"] == left


def test_what_keeps_its_ratio_is_long_again_and_a_batch_that_was_not_made_smaller_pays() -> None:
    """`head_size` is made smaller with all else, so that 128 columns are 32."""
    source = """
import torch
import torch.nn as nn
batch, heads, head_size = 16, 8, 128
SMALL = {"heads": 2, "head_size": 32}
class Model(nn.Module):
    def forward(self, x):
        return x * x + x
def get_inputs():
    return [torch.rand(batch, heads, head_size, head_size)]
def get_init_inputs():
    return []
"""
    found = lengthened(Problem("p", 1, "train", source), H200)
    assert dict(found[0].sizes) == {"batch": 4, "heads": 8, "head_size": 128}


def test_a_size_is_long_with_the_places_in_it() -> None:
    """Rows up to the last but one of 10,000, compared at 312 of 313. Sizes that are farther apart are long alone."""
    taken, apart = "x[:last, :columns].sum()", "x.sum(0)[:columns]"
    source = SOURCE.replace("rows, columns = {full}", "rows, last, columns = {full}")

    def sizes(full: tuple[int, int, int], forward: str) -> list[Sizes]:
        text = source.format(
            full=full, small={"rows": 313, "last": 312, "columns": 32}, arguments="x", forward=forward,
            inputs="torch.rand(rows, 2 * columns)",
        )  # fmt: skip
        return [dict(one.sizes) for one in lengthened(Problem("p", 1, "train", text), H200, 1)]

    assert all((one["rows"] > 313) == (one["last"] > 312) for one in sizes((10000, 9998, 512), taken))
    assert any(one["rows"] > 313 for one in sizes((10000, 9998, 512), taken))
    assert any((one["rows"] > 313) != (one["last"] > 312) for one in sizes((10000, 9000, 512), apart))


def test_what_had_to_be_halved_is_as_in_the_file_where_all_others_are_smaller() -> None:
    """A product that is split where its inner extent is 16384: rows and columns were not made smaller, and are then."""
    source = """
import torch
import torch.nn as nn
M, N, K = 256, 256, 16384
SMALL = {"K": 512}
class Model(nn.Module):
    def forward(self, x, y):
        return x @ y
def get_inputs():
    return [torch.rand(M, K), torch.rand(K, N)]
def get_init_inputs():
    return []
"""
    first, second = lengthened(Problem("p", 1, "train", source), H200)
    assert first.sizes["K"] < 16384
    assert second.sizes["K"] == 16384 and second.sizes["M"] == second.sizes["N"] < 256
    assert all(look.sizes["K"] < 16384 for look in lengthened(Problem("p", 1, "train", source), H200, halvings=1))


def test_heads_that_were_not_made_smaller_keep_their_ratio_where_blocks_are_filled() -> None:
    """Products of 16 heads of 1024 rows are too much work, and so are those of 16 heads of 256; of 4, they are not."""
    source = """
import torch
import torch.nn as nn
size, heads = 1024, 16
SMALL = {"size": 64}
class Model(nn.Module):
    def forward(self, x, heads):
        y = x.view(x.shape[0], heads, -1).transpose(0, 1)
        return torch.softmax(y @ y.mT, -1) @ y
def get_inputs():
    return [torch.rand(size, size), heads]
def get_init_inputs():
    return []
"""
    assert {"size": 256, "heads": 4} in [dict(one.sizes) for one in filling(Problem("p", 1, "train", source), H200)]


def test_a_place_is_long_with_its_axis() -> None:
    """489 is given to no call, and is not far below the 500 columns."""
    source = """
import torch
import torch.nn as nn
rows, columns, end = 4096, 500, 489
SMALL = {"rows": 8, "columns": 62, "end": 61}
class Model(nn.Module):
    def forward(self, x, end):
        return x[:, 3:end].sum(1)
def get_inputs():
    return [torch.rand(rows, columns), end]
def get_init_inputs():
    return []
"""
    found = [dict(one.sizes) for one in lengthened(Problem("p", 1, "train", source), H200)]
    assert {"rows": 8, "columns": 500, "end": 489} in found
    assert all(one["end"] < one["columns"] for one in found)


def test_a_loop_of_more_operators_than_are_counted_is_longer_as_far_as_they_are() -> None:
    source = """
import torch
import torch.nn as nn

LENGTH, WIDTH = 4096, 64
SMALL = {"LENGTH": 16, "WIDTH": 8}

class Model(nn.Module):
    def forward(self, x):
        h, out = torch.zeros_like(x[0]), []
        for row in x.unbind(0):
            h = torch.tanh(h + row) * 0.5
            out.append(h)
        return torch.stack(out)

def get_inputs():
    return [torch.randn(LENGTH, WIDTH)]

def get_init_inputs():
    return []
"""
    found = lengthened(Problem("loop", 1, "train", source), H200)
    assert max(look.sizes["LENGTH"] for look in found) >= 1024


def test_a_loop_that_makes_too_much_is_not_traced_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn makes two million numbers at full shape, where 2.6 million fit. To the ends of all loops it is 14,392 operators."""
    counted = 0
    real = needs._Counting._count

    def counting(recorder: needs._Counting, *tensors: list[torch.Tensor]) -> None:
        nonlocal counted
        counted += 1
        real(recorder, *tensors)

    monkeypatch.setattr(needs._Counting, "_count", counting)
    forward = "sum(x[row].outer(x[row]).relu().sum(1) for row in range(rows))"
    found = looks((512, 1024), {"rows": 4, "columns": 32}, forward)
    assert found == [{"rows": 2, "columns": 512}, {"rows": 512, "columns": 32}] and counted < 12_000


GROUPED = """
import torch
import torch.nn as nn
QUERIES, KEYS, LENGTH = 16, 4, 1024
SMALL = {"QUERIES": 4, "KEYS": 2, "LENGTH": 16}
class Model(nn.Module):
    def forward(self, q, k):
        return q @ k.repeat_interleave(q.shape[0] // k.shape[0], 0).transpose(1, 2)
def get_inputs():
    return [torch.rand(QUERIES, LENGTH, 8), torch.rand(KEYS, LENGTH, 8)]
def get_init_inputs():
    return []
"""


def test_heads_of_queries_are_more_than_those_of_keys_in_each_look() -> None:
    """Where both are as many, each of the queries' heads has one of its own, whatever a kernel takes for the one that is its."""
    every = lengthened(Problem("p", 1, "train", GROUPED), H200)
    sizes = [one.sizes for one in every] + [one.lighter.sizes for one in every if one.lighter]
    assert {"QUERIES": 8, "KEYS": 4, "LENGTH": 16} in sizes
    found = [(one.get("QUERIES", 16), one.get("KEYS", 4)) for one in sizes]
    assert found and all(queries > keys for queries, keys in found)
