"""Every operator that a Program may name has a cost, moves nothing, or is refused where time is modelled."""

from __future__ import annotations

import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rlkernel.evaluator.devices import H200
from rlkernel.evaluator.judging.costs.operations import FLOPS, flops, least_flops, share_done
from rlkernel.evaluator.judging.costs.operator_costs import (
    MEMORY,
    POOLS,
    NoCost,
    dense_bytes,
    has_cost,
    moved_bytes,
    taken,
    touched,
)
from rlkernel.evaluator.judging.costs.roofline import is_free, operator_us
from rlkernel.evaluator.program.operators import LISTS, argument, base_name, operator
from rlkernel.evaluator.program.schema import MalformedProgram, Op
from rlkernel.types import Precision

ARITHMETIC = re.compile(r"(add|b)?(mm|mv)|conv.*|linalg|fft|cholesky|trilinear|cdist|pdist|attention|rnn|lstm|gru|solve")
"""Words in the names of operators that arithmetic may bound."""


def allowed() -> list[str]:
    """Every overload that a Program may name."""
    found = []
    for name in torch._C._dispatch_get_all_op_names():
        if name.startswith("aten::"):
            base, _, overload = name.removeprefix("aten::").partition(".")
            try:
                operator(f"aten.{base}.{overload or 'default'}")
            except MalformedProgram:
                continue
            found.append(f"aten.{base}.{overload or 'default'}")
    return found


ALLOWED = allowed()


def is_view(op: str) -> bool:
    returns = operator(op)._schema.returns
    views = any(r.alias_info is not None and not r.alias_info.is_write for r in returns)
    return views or torch.Tag.inplace_view in operator(op).tags


def test_the_allow_list_is_walked() -> None:
    assert len(ALLOWED) > 1500


def test_what_has_no_cost_and_is_no_view_is_refused() -> None:
    x = torch.empty(4, device="meta")
    unknown = [op for op in ALLOWED if not has_cost(op) and not is_view(op)]
    assert unknown, "some operators are always unknown"
    for op in unknown:
        with pytest.raises(NoCost, match="no modelled cost"):
            operator_us(Op(op, (), {}, (1,)), [x], [torch.empty(4, device="meta")], H200, Precision.STRICT)


def test_operators_of_everyday_models_have_a_cost() -> None:
    everyday = """add mul relu gelu softmax _softmax convolution mm addmm bmm native_layer_norm native_group_norm sum mean
        var_mean max_pool2d_with_indices avg_pool2d cat index gather scatter_add cumsum sort topk embedding clone copy fill
        where pow scaled_dot_product_attention masked_fill argmax logsumexp constant_pad_nd upsample_nearest2d native_dropout
        bernoulli linalg_solve_triangular linalg_inv_ex linalg_cholesky_ex linalg_qr _linalg_det"""
    names = {base_name(op): op for op in ALLOWED}
    assert [name for name in everyday.split() if not has_cost(names[name])] == []


def test_derivatives_of_what_memory_bounds_have_a_cost() -> None:
    derivatives = """_softmax_backward_data _log_softmax_backward_data native_layer_norm_backward native_group_norm_backward
        native_batch_norm_backward nll_loss_backward embedding_dense_backward mse_loss_backward gelu_backward leaky_relu_backward
        log_sigmoid_backward max_pool2d_with_indices_backward _adaptive_avg_pool2d_backward select_backward slice_backward"""
    names = {base_name(op): op for op in ALLOWED}
    assert [name for name in derivatives.split() if not has_cost(names[name])] == []
    assert not has_cost(names["convolution_backward"]) and not has_cost(names["linear_backward"]), "arithmetic bounds these"
    assert moved_bytes(Op("aten._softmax_backward_data.default", (), {}, (1,)), [meta(3, 4), meta(3, 4)], [meta(3, 4)]) == 4 * 36


def test_nothing_that_arithmetic_may_bound_is_priced_by_memory_alone() -> None:
    names = {base_name(op).removeprefix(LISTS) for op in ALLOWED if has_cost(op) and not is_view(op)}
    suspicious = {name for name in names if any(ARITHMETIC.fullmatch(word) for word in name.split("_"))}
    gates = {"_thnn_fused_lstm_cell", "_thnn_fused_gru_cell"}  # of products that are made before
    assert suspicious - set(FLOPS) == {"linalg_cross", "linalg_vector_norm", "fft_fftfreq", "fft_rfftfreq", *gates}


def test_the_tables_name_operators_that_exist() -> None:
    names = {base_name(op) for op in ALLOWED} | {op.split(".")[1] for op in ALLOWED}
    assert sorted((set(FLOPS) | MEMORY | set(POOLS)) - names) == []


def meta(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.empty(*shape, dtype=dtype, device="meta")


def test_transposed_convolutions_count_by_their_input() -> None:
    x, weight, out = meta(2, 3, 8, 8), meta(3, 5, 4, 4), meta(2, 5, 17, 17)
    by_keyword = Op("aten.convolution.default", (), {"transposed": True, "input": None, "weight": None}, (1,))
    assert argument(by_keyword, "transposed") is True
    # every element of the input meets 5 * 4 * 4 weights
    assert flops(by_keyword, [x, weight], [out]) == 2 * x.numel() * 5 * 16
    slow = Op("aten.slow_conv_transpose2d.default", (), {}, (1,))
    assert flops(slow, [x, weight], [out]) == 2 * x.numel() * 5 * 16


def test_bilinear_forms_and_distances_count_their_arithmetic() -> None:
    # 6 rows; 3 outputs, 4 x 5 inputs, as `bilinear` calls it
    step = Op("aten._trilinear.default", (None, None, None, [1, 3], [0], [1, 2], [2, 3]), {}, (1,))
    assert flops(step, [meta(6, 4), meta(3, 4, 5), meta(6, 5)], [meta(6, 3)]) == 3 * 6 * 3 * 4 * 5
    assert flops(Op("aten._cdist_forward.default", (), {}, (1,)), [meta(7, 4), meta(9, 4)], [meta(7, 9)]) == 3 * 7 * 9 * 4


@pytest.mark.parametrize("name", ["tril", "triu"])
@pytest.mark.parametrize("shape", [(4, 4), (3, 7), (7, 3), (1, 1)])
@pytest.mark.parametrize("diagonal", [-100, -3, -1, 0, 1, 2, 5, 100])
def test_triangles_are_read_as_far_as_they_are_left(name: str, shape: tuple[int, int], diagonal: int) -> None:
    left = getattr(torch, name)(torch.ones(2, *shape), diagonal).sum()
    step = Op(f"aten.{name}.default", (None, diagonal), {}, (1,))
    assert moved_bytes(step, [meta(2, *shape)], [meta(2, *shape)]) == pytest.approx(4 * float(left) + 4 * 2 * shape[0] * shape[1])


def test_windows_that_overlap_are_read_once() -> None:
    line = meta(100)
    assert dense_bytes(line.unfold(0, 10, 1)) == 4 * 100  # 91 windows of 10
    assert dense_bytes(line.unfold(0, 10, 20)) == 4 * 50  # 5 windows that lie apart
    assert dense_bytes(meta(4, 1).expand(4, 8)) == 4 * 4 and dense_bytes(meta(0, 3)) == 0


def test_bags_read_the_rows_that_their_indices_name() -> None:
    table, indices, out = meta(1000, 8), torch.empty(20, dtype=torch.int64, device="meta"), meta(5, 8)
    # 20 rows of 8 floats and their indices, 5 rows written
    assert moved_bytes(Op("aten._embedding_bag.default", (), {}, (1,)), [table, indices], [out]) == 20 * (32 + 8) + 5 * 32


@pytest.mark.parametrize(
    ("op", "tensors", "read"),
    [
        ("aten.add.Tensor", 2, 2),
        ("aten.add.out", 3, 2),
        ("aten.add_.Tensor", 2, 2),
        ("aten.copy_.default", 2, 1),
        ("aten.fill_.Scalar", 1, 0),
        ("aten.sort.values", 3, 1),
        ("aten.zeros_like.default", 1, 0),
        ("aten.new_full.default", 1, 0),
    ],
)
def test_what_is_only_written_is_not_read(op: str, tensors: int, read: int) -> None:
    step, given = Op(op, (), {}, (1,)), [meta(8) for _ in range(tensors)]
    used = taken(step, given)
    assert len(used) == read and all(any(t is g for g in given) for t in used)
    made = given[-1] if op.split(".")[1].endswith("_") or op.endswith((".out", ".values")) else meta(8)
    busy = operator_us(step, given, [made], H200, Precision.STRICT) - H200.launch_us
    assert busy == pytest.approx((4 if "sort" in op else 1) * (read + 1) * 32 / H200.dram_bytes_per_us)


def test_float64_products_are_slower_than_float32() -> None:
    times = []
    for dtype in (torch.float32, torch.float64):
        a, b, c = (torch.empty(2048, 2048, dtype=dtype, device="meta") for _ in range(3))
        times.append(operator_us(Op("aten.mm.default", (), {}, (1,)), [a, b], [c], H200, Precision.STRICT) - H200.launch_us)
    assert times[1] == pytest.approx(2 * times[0])


def test_a_complex_product_costs_four_real_ones_and_needs_three() -> None:
    step = Op("aten.mm.default", (), {}, (1,))
    real = [meta(8, 16), meta(16, 4), meta(8, 4)]
    numbers = [tensor.to(torch.complex64) for tensor in real]
    assert flops(step, real[:2], real[2:]) == 2 * 8 * 16 * 4
    assert flops(step, numbers[:2], numbers[2:]) == 4 * 2 * 8 * 16 * 4
    assert least_flops(step, numbers[:2], numbers[2:]) == 3 * 2 * 8 * 16 * 4
    transform = Op("aten._fft_c2c.default", (), {}, (1,))  # 5 n log2 n are operations on real numbers
    assert flops(transform, numbers[:1], numbers[:1]) == 5 * 128 * 7


def test_views_in_place_are_free() -> None:
    x = meta(4, 4)
    for name in ("unsqueeze_", "t_", "squeeze_"):
        assert is_free(Op(f"aten.{name}.default", (), {}, (0,)), [x], [x])


def test_an_attention_costs_both_of_its_products() -> None:
    query, key, value = torch.empty(1, 8, 1), torch.empty(1, 16, 1), torch.empty(1, 16, 32)
    step = Op("aten.scaled_dot_product_attention.default", (), {}, (3,))
    # 8 rows x 16 keys: 2 x 1 for each score, 2 x 32 for each weighted value
    assert FLOPS["scaled_dot_product_attention"](step, [query, key, value], [torch.empty(1, 8, 32)]) == 2 * 8 * 16 * (1 + 32)


@given(st.integers(1, 64), st.integers(1, 64))
def test_an_element_that_windows_share_is_looked_at_once_for_each(width: int, more: int) -> None:
    x = meta(1, width + more)
    pooled, windows = meta(1, more + 1), x.unfold(1, width, 1)
    pool = Op("aten.avg_pool2d.default", (None, [1, width]), {}, (1,))
    assert touched(pool, [x], [pooled]) == max(width * (more + 1), width + more)
    total = Op("aten.sum.dim_IntList", (None, [-1]), {}, (1,))
    assert touched(total, [windows], [pooled]) == width * (more + 1)
    assert dense_bytes(windows) == 4 * (width + more)


@pytest.mark.parametrize(
    ("name", "sizes", "dims"), [("avg_pool2d", [5], 2), ("max_pool2d_with_indices", [3, 7], 2), ("avg_pool3d", 4, 3)]
)
def test_a_window_has_a_size_along_each_dimension(name: str, sizes: list[int] | int, dims: int) -> None:
    step = Op(f"aten.{name}.default", (None, sizes), {}, (1,))
    window = {"avg_pool2d": 25, "max_pool2d_with_indices": 21, "avg_pool3d": 64}[name]
    assert touched(step, [meta(2, 2)], [meta(10, 10)]) == 100 * window
    assert POOLS[name] == dims


def test_large_windows_take_longer_than_memory() -> None:
    x, out = meta(64, 262144), meta(64, 261120)
    small, large = (
        operator_us(Op("aten.avg_pool2d.default", (None, [1, width]), {}, (1,)), [x], [out], H200, Precision.STRICT)
        for width in (3, 1025)
    )
    assert small == pytest.approx(
        moved_bytes(Op("aten.neg.default", (), {}, (1,)), [x], [out]) / H200.dram_bytes_per_us + H200.launch_us
    )
    assert large > 50 * small


@pytest.mark.parametrize(("op", "axes"), [("aten.fractional_max_pool2d.default", 2), ("aten.fractional_max_pool3d.default", 3)])
def test_a_fractional_pool_looks_at_its_windows(op: str, axes: int) -> None:
    x, samples, made = meta(2, 3, *[32] * axes), meta(2, 3, axes), meta(2, 3, *[24] * axes)
    pool = Op(op, (None, [9] * axes, [24] * axes, None), {}, (1, 2))
    assert touched(pool, [x, samples], [made, made]) == made.numel() * 9**axes


@given(st.integers(1, 40), st.integers(1, 40))
def test_a_causal_attention_does_what_lies_below_its_diagonal(queries: int, keys: int) -> None:
    q, k = meta(2, queries, 8), meta(2, keys, 8)
    below = int(torch.ones(queries, keys).tril().sum())
    causal = Op("aten.scaled_dot_product_attention.default", (None, None, None, None, 0.0, True), {}, (1,))
    assert share_done(causal, [q, k, k]) == pytest.approx(below / (queries * keys))
    assert share_done(Op(causal.op, (), {"is_causal": True}, (1,)), [q, k, k]) == share_done(causal, [q, k, k])
    assert share_done(Op(causal.op, (), {}, (1,)), [q, k, k]) == 1.0
    assert least_flops(causal, [q, k, k], [q]) == 2.0 * 2 * queries * keys * 16, "as much as ever is asked of a candidate"


def test_a_gather_reads_what_it_writes_and_the_numbers_that_name_it() -> None:
    table, places, rows = torch.zeros(1000, 8), torch.zeros(20, dtype=torch.int64), torch.zeros(20, 8)
    assert moved_bytes(Op("aten.index.Tensor", (), {}, (1,)), [table, places], [rows]) == 2 * 20 * 32 + 20 * 8
    assert moved_bytes(Op("aten.embedding.default", (), {}, (1,)), [table[:4], places], [rows]) == 4 * 32 + 20 * 8 + 20 * 32
    assert moved_bytes(Op("aten.gather.default", (), {}, (1,)), [table[0], places], [rows[:, 0]]) <= 3 * 20 * 4


def test_a_scatter_in_place_moves_what_it_changes_and_what_says_where() -> None:
    """Rows of 8 floats are 32 bytes, numbers 8: of 1,000 rows 20 are replaced, added to (read and written) or filled."""
    cache, places, rows = meta(1000, 8), meta(20, dtype=torch.int64), meta(20, 8)
    put = Op("aten.index_put_.default", (None, [places], None), {}, (1,))
    assert moved_bytes(put, [cache, places, rows], [cache]) == 20 * (8 + 32 + 32)
    assert touched(put, [cache, places, rows], [cache]) == 20 * 8
    added = Op(put.op, (None, [places], None, True), {}, (1,))
    assert moved_bytes(added, [cache, places, rows], [cache]) == 20 * (8 + 32 + 2 * 32)
    columns = Op(put.op, (None, [None, places], None), {}, (1,))  # 20 columns of 1,000 elements are more than there are
    assert moved_bytes(columns, [cache, places, meta(1)], [cache]) == 20 * 8 + 4 + 1000 * 32
    add = Op("aten.index_add_.default", (None, 0, None, None), {}, (1,))
    assert moved_bytes(add, [cache, places, rows], [cache]) == 20 * (8 + 32 + 2 * 32)
    fill = Op("aten.index_fill_.int_Scalar", (None, 0, None, 0), {}, (1,))
    assert moved_bytes(fill, [cache, places], [cache]) == 20 * (8 + 32)
    scatter = Op("aten.scatter_.src", (None, 0, None, None), {}, (1,))
    assert moved_bytes(scatter, [cache, meta(5, 8, dtype=torch.int64), rows], [cache]) == 40 * 8 + 20 * 32 + 40 * 4


def test_a_scatter_that_makes_a_copy_or_is_told_by_a_mask_moves_all() -> None:
    cache, places, rows = meta(1000, 8), meta(20, dtype=torch.int64), meta(20, 8)
    copied = Op("aten.index_put.default", (None, [places], None), {}, (1,))
    assert moved_bytes(copied, [cache, places, rows], [meta(1000, 8)]) == 2 * 32000 + 20 * (8 + 32)
    mask = meta(1000, 8, dtype=torch.bool)
    masked = Op("aten.masked_fill_.Scalar", (None, None, 0.0), {}, (1,))
    assert moved_bytes(masked, [cache, mask], [cache]) == 2 * 32000 + 8000
    by_mask = Op("aten.index_put_.default", (None, [mask], None), {}, (1,))
    assert moved_bytes(by_mask, [cache, mask, meta(1)], [cache]) == 2 * 32000 + 8000 + 4
