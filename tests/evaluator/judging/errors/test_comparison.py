"""Comparison of outputs: what passes, what does not, and with which error."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rlkernel.evaluator.judging.errors import comparison
from rlkernel.evaluator.judging.errors.comparison import SLICE, SLICE_ELEMENTS, compare_structure, compare_tensor, wrong_slices
from rlkernel.evaluator.judging.errors.own_error import Cores, OwnError, casts, errors, huge_from, own_error, steady
from rlkernel.evaluator.judging.errors.tolerance import beside, tolerance
from rlkernel.evaluator.judging.rounds import Expected, compare_round, fates
from rlkernel.evaluator.messages.judgement import InputFate, Tolerance
from rlkernel.types import Precision

EXACT = torch.tensor([3.0, 4.0], dtype=torch.float64)


def check(found: torch.Tensor, reference: torch.Tensor, exact: torch.Tensor | None = None, **kwargs: Any) -> tuple[bool, str]:
    exact = reference.double() if exact is None else exact
    allowed = tolerance(reference.dtype, own_error(reference, exact), kwargs.pop("precision", Precision.STRICT))
    match = compare_tensor(found, reference, exact, **{"allowed": allowed, "overlapping": False, "where": "output", **kwargs})
    return match.matches, match.detail


def norm_error(found: torch.Tensor, exact: torch.Tensor) -> float:
    return errors(found.double(), exact.double())[0]


@pytest.mark.parametrize("wide", [torch.float32, torch.float64])
def test_numbers_whose_squares_float32_cannot_hold_are_compared_all_the_same(wide: torch.dtype) -> None:
    """Two outputs of 1e25 on a GPU, where the reference in its own dtype is the measure, had a relative error of NaN."""
    exact = torch.full((64, 32), 1e25).to(wide)
    found = exact.float() * 1.001
    assert errors(found, exact) == pytest.approx((1e-3, 5e-4), rel=1e-3)  # (0.001 t) / (t + t)
    assert not wrong_slices(found, exact, Tolerance(2e-3, 0.1)).any()
    found[3] = 0.0
    with patch.object(comparison, "AT_ONCE", 0), patch.object(comparison, "BLOCK", 100):  # three rows at a time
        many = wrong_slices(found, exact, Tolerance(2e-3, 0.1)).tolist()
    assert many == wrong_slices(found, exact, Tolerance(2e-3, 0.1)).tolist() == [True, False]


def test_errors_by_hand() -> None:
    # difference (0, 0.05), exact norm 5: 0.01; the second element: 0.05 / (4 + 5 / sqrt(2))
    norm, element = errors(torch.tensor([3.0, 4.05]).double(), EXACT)
    assert norm == pytest.approx(0.01, rel=1e-5)
    assert element == pytest.approx(0.05 / (4 + 5 / math.sqrt(2)), rel=1e-5)


def test_the_tolerance_is_a_multiple_of_the_references_own_error_above_a_floor() -> None:
    own = own_error(EXACT.float(), EXACT)
    assert tolerance(torch.float32, own, Precision.STRICT) == Tolerance(5e-5, 1e-3)
    assert tolerance(torch.float32, own, Precision.TF32) == Tolerance(2e-3, 2e-2)
    off = own_error(torch.tensor([3.0, 4.05]), EXACT)
    assert tolerance(torch.float32, off, Precision.STRICT).norm == pytest.approx(8 * 0.01, rel=1e-4)
    assert tolerance(torch.float32, off, Precision.STRICT).element == pytest.approx(8 * 0.05 / (4 + 5 / math.sqrt(2)), rel=1e-4)
    assert tolerance(torch.int64, own, Precision.STRICT) == Tolerance(0.0, 0.0)


def test_who_casts_is_its_own_measure_and_who_is_as_exact_is_right_beside_it() -> None:
    single, half = torch.randn(8), torch.randn(8).bfloat16()
    assert casts(half, [single]) and not casts(half, [single, half]) and not casts(single, [single])
    own = OwnError(norm=0.04, element=0.1, cast=True)
    assert not own.steady and replace(own, cast=False).steady
    assert tolerance(torch.bfloat16, steady(own), Precision.PYTORCH).norm == 2e-2
    assert beside(torch.bfloat16, own, Precision.PYTORCH).norm == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("found", "detail"),
    [
        (torch.zeros(3), "output has shape (3,), expected (2,)"),
        (torch.zeros(2, dtype=torch.float16), "output has dtype float16, expected float32"),
        (torch.zeros(2), "output is wrong: relative error 1.00e+00, allowed 5e-05"),
        (torch.tensor([3.0, math.nan]), "output has NaN or infinity where the reference is finite, or the reverse"),
        (torch.tensor([3.0, 4.001]), "output is wrong: relative error 2.00e-04, allowed 5e-05"),
    ],
)
def test_wrong_outputs(found: torch.Tensor, detail: str) -> None:
    assert check(found, torch.tensor([3.0, 4.0])) == (False, detail)


def test_right_outputs() -> None:
    assert check(torch.tensor([3.0, 4.0001]), torch.tensor([3.0, 4.0])) == (True, "")
    assert check(torch.tensor([3, 4]), torch.tensor([3, 4])) == (True, "")
    assert check(torch.tensor([3.0, math.inf]), torch.tensor([3.0, math.inf])) == (True, "")


def test_an_output_of_zeros_matches_zeros_only() -> None:
    assert check(torch.zeros(4), torch.zeros(4)) == (True, "")
    assert not check(torch.full((4,), 1e-3), torch.zeros(4))[0]


def test_infinities_keep_their_sign() -> None:
    assert not check(torch.tensor([3.0, -math.inf]), torch.tensor([3.0, math.inf]))[0]


def test_whole_numbers_that_the_reference_rounds_to_a_neighbour_may_be_off_by_one() -> None:
    """The reference and float64 differ in 1 of 1000 numbers, by one: 8 may. By two, or in an int64, none may."""
    reference = torch.arange(1000).remainder(100).to(torch.int8)
    exact = reference.clone()
    exact[7] += 1

    def off(count: int, by: int = 1) -> torch.Tensor:
        return reference + torch.where(torch.arange(1000) < count, by, 0).to(torch.int8)

    assert check(off(8), reference, exact) == (True, "")
    assert check(off(9), reference, exact) == (False, "output: 9 of 1000 elements differ")
    assert check(off(1, by=2), reference, exact) == (False, "output: 1 of 1000 elements differ")
    assert check(off(1), reference, reference.clone())[0] is False
    assert check(off(1).long(), reference.long(), exact.long())[0] is False
    exact[:] = reference + 1  # float64 rounds all of them the other way: 0.05 of them may be off
    assert check(off(50), reference, exact)[0] is True
    assert check(off(51), reference, exact)[0] is False
    exact[3] += 1
    assert check(off(1), reference, exact)[0] is False


def test_integers_are_exact() -> None:
    assert check(torch.tensor([3, 5]), torch.tensor([3, 4])) == (False, "output: 1 of 2 elements differ")


def test_one_wrong_element_among_many_is_caught_although_the_norm_hides_it() -> None:
    reference = torch.ones(1 << 20)
    found = reference.clone()
    found[7] += 0.04  # norm error 0.04 / 1024 = 3.9e-5, below 5e-5; element error 0.04 / 2 = 0.02, above 1e-3
    assert norm_error(found, reference) < 5e-5
    assert check(found, reference) == (False, "output is wrong in single elements: relative error 2.00e-02")


def test_overlapping_outputs_are_refused_and_the_order_in_memory_is_free() -> None:
    reference = torch.arange(6.0).reshape(2, 3)
    assert check(reference, reference, overlapping=True)[1] == "output is an expanded view: its elements share memory"
    transposed = reference.t().contiguous().t()
    assert check(transposed, reference)[0] and check(reference, transposed)[0]
    assert not check(transposed.clone().zero_(), reference)[0]
    assert check(torch.arange(12.0).reshape(2, 6)[:, :3], reference)[0] is False, "0 1 2 6 7 8 is not 0 to 5"
    with_gaps = torch.zeros(2, 6)
    with_gaps[:, :3] = reference
    assert check(with_gaps[:, :3], reference)[0]


def test_half_precision_in_a_float32_task_is_refused_and_tf32_follows_the_setting() -> None:
    generator = torch.Generator().manual_seed(0)
    reference = torch.randn(4096, generator=generator)
    shortcut = reference.half().float()
    assert not check(shortcut, reference)[0]
    assert check(shortcut, reference, precision=Precision.TF32)[0]


@pytest.mark.parametrize(
    ("found", "expected", "message"),
    [
        ({"tensor": 0}, {"tensor": 0}, None),
        ([{"tensor": 0}], {"tensor": 0}, "output is not a tensor"),
        ({"tensor": 0}, [{"tensor": 0}, {"tensor": 1}], "output is one value, expected 2"),
        ([{"tensor": 0}], [{"tensor": 0}, {"tensor": 1}], "output has 1 values, expected 2"),
        ({"dict": [["a", {"tensor": 0}]]}, {"dict": [["b", {"tensor": 0}]]}, "output has other keys"),
        ({"dict": [["a", 1]]}, {"dict": [["a", 2]]}, "output['a'] is 1, expected 2"),
    ],
)
def test_structure(found: Any, expected: Any, message: str | None) -> None:
    assert compare_structure(found, expected) == message


def expected(fate: InputFate, after: torch.Tensor, before: torch.Tensor, **more: Any) -> Expected:
    out = torch.ones(2)
    return Expected({"tensor": 0}, (out,), (out.double(),), (after,), (before,), (fate,), (Tolerance(5e-5, 1e-3),), **more)


@pytest.mark.parametrize(
    ("fate", "found", "detail"),
    [
        (InputFate.KEPT, 0.0, ""),
        (InputFate.KEPT, 9.0, "forward changes its input 0, the reference does not"),
        (InputFate.CHANGED, 9.0, ""),
        (InputFate.CHANGED, 9.0 + 1e-5, ""),
        (InputFate.CHANGED, 0.0, "forward leaves its input 0 as it is, the reference changes it"),
        (InputFate.CHANGED, 8.0, "input 0 after forward is wrong: relative error 1.11e-01, allowed 5e-05"),
        (InputFate.RETURNED, 0.0, ""),
        (InputFate.RETURNED, 9.0, ""),
        (InputFate.RETURNED, 8.0, "input 0 after forward is wrong: relative error 1.11e-01, allowed 5e-05"),
    ],
)
def test_inputs_after_forward(fate: InputFate, found: float, detail: str) -> None:
    before = torch.zeros(2)
    after = before if fate is InputFate.KEPT else torch.full((2,), 9.0)
    match = compare_round(
        {"tensor": 0}, [torch.ones(2)], [False], [False], [torch.full((2,), found)], {}, expected(fate, after, before)
    )
    assert (match.matches, match.detail) == (not detail, detail)


def test_an_argument_that_is_returned_may_hold_what_the_output_holds() -> None:
    out, near, far = torch.ones(2), torch.full((2,), 1.004), torch.full((2,), 1.01)
    one = expected(InputFate.RETURNED, out, torch.zeros(2), lent=(True,))
    one = replace(one, reference=(out,), allowed=(Tolerance(5e-3, 1e-2),))

    def detail(output: torch.Tensor, argument: torch.Tensor) -> str:
        return compare_round({"tensor": 0}, [output], [False], [True], [argument], {}, one).detail

    assert detail(near, near) == ""
    assert detail(near, far) == "input 0 after forward is wrong: relative error 1.00e-02, allowed 5e-05"
    assert detail(far, far) == "output is wrong: relative error 1.00e-02, allowed 5e-03"


def test_an_answer_that_is_more_exact_than_the_reference_is_right() -> None:
    exact = torch.linspace(1, 2, 64, dtype=torch.float64)
    reference = (exact + 0.15 * torch.sin(37 * exact)).bfloat16()
    own = own_error(reference, exact)
    assert not own.steady
    one = Expected(
        {"tensor": 0}, (reference,), (reference,), (), (), (), (tolerance(torch.bfloat16, OwnError(), Precision.STRICT),),
        beside={0: (exact, beside(torch.bfloat16, own, Precision.STRICT))},
    )  # fmt: skip

    def matches(found: torch.Tensor) -> bool:
        return compare_round({"tensor": 0}, [found], [False], [False], [], {}, one).matches

    assert matches(reference)
    assert matches(exact.bfloat16())
    assert not matches((exact * 1.3).bfloat16())
    assert beside(torch.bfloat16, OwnError(norm=1.0, element=1.0), Precision.STRICT) == tolerance(
        torch.bfloat16, OwnError(), Precision.STRICT
    )


def test_what_the_reference_does_to_its_inputs() -> None:
    kept, changed, returned = torch.zeros(2), torch.ones(2), torch.ones(2)
    before = [torch.zeros(2)] * 3
    assert fates([kept, changed, returned], before, [returned.view(1, 2)]) == ("kept", "changed", "returned")


def test_state_that_the_reference_changes_is_compared() -> None:
    want = {"running_mean": (torch.tensor([0.5, 0.25]), Tolerance(5e-5, 1e-3))}
    one = expected(InputFate.KEPT, torch.zeros(2), torch.zeros(2), state=want)

    def detail(state: dict[str, torch.Tensor]) -> str:
        return compare_round({"tensor": 0}, [torch.ones(2)], [False], [False], [torch.zeros(2)], state, one).detail

    assert detail({"running_mean": torch.tensor([0.5, 0.25])}) == ""
    assert detail({"running_mean": torch.zeros(2)}).startswith("running_mean after forward is wrong")
    assert detail({}) == "the reference's forward changes running_mean, which ModelNew does not have"


def masked(rows: int, fill: float) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(rows, rows, generator=generator)
    return scores.masked_fill(torch.ones(rows, rows).triu(1) > 0, fill)


@pytest.mark.parametrize("fill", [-1e9, torch.finfo(torch.float32).min, -math.inf, 1e6])
def test_huge_values_hide_nothing_beside_them(fill: float) -> None:
    reference = masked(64, fill)
    assert check(reference.clone(), reference) == (True, "")
    assert check(reference * (1 - 1e-6), reference)[0]
    constant = torch.where(reference == fill, reference, torch.zeros(()))
    assert not check(constant, reference)[0]
    other = torch.where(reference == fill, torch.tensor(fill / 2 if math.isfinite(fill) else -1e9), reference)
    assert not check(other, reference)[0]


def test_magnitudes_without_a_gap_are_all_ordinary() -> None:
    generator = torch.Generator().manual_seed(0)
    for values in (torch.randn(4096, generator=generator), torch.logspace(-20, 5, 4096), torch.zeros(64), torch.ones(1)):
        assert huge_from(values) == math.inf
    cancelled = torch.cat([torch.full((4,), 1e-9), 5 + torch.randn(100, generator=generator)])
    assert huge_from(cancelled) == math.inf, "the bulk is not huge because of what a cancellation leaves"
    masked = torch.cat([cancelled, torch.full((500,), -1e9)])
    assert 100 < huge_from(masked) < 1e9
    assert 1 < huge_from(torch.tensor([1.0, 2.0, 3.0, 1e9, 1e9])) < 1e9


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_zeroed_elements_rows_columns_and_tails_are_caught_in_every_dtype(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    exact = torch.randn(512, 512, generator=generator, dtype=torch.float64)
    exact[:, 100] *= 0.05  # a quiet column
    reference = exact.to(dtype)
    noisy = (exact * (1 + torch.finfo(dtype).eps * torch.rand(exact.shape, generator=generator))).to(dtype)
    assert check(noisy, reference, exact) == (True, "")
    for where in (
        (slice(7, 8), slice(None)),
        (slice(None), slice(509, None)),
        (slice(None), 100),
        (slice(500, 502), slice(0, 20)),
    ):
        found = reference.clone()
        found[where] = 0
        assert not check(found, reference, exact)[0], where
    found = reference.clone()
    found.view(-1)[int(reference.abs().argmax())] = 0
    assert not check(found, reference, exact)[0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_a_constant_near_the_mean_is_caught(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    spread = 16 * torch.finfo(dtype).eps
    exact = 1.0 + spread * torch.randn(4096, generator=generator, dtype=torch.float64)
    reference = exact.to(dtype)
    assert check(reference, reference, exact) == (True, "")
    assert not check(torch.ones_like(reference), reference, exact)[0]


def test_the_spread_over_roundings_of_the_inputs_counts_as_the_references_own_error() -> None:
    exact = torch.tensor([3.0, 4.0], dtype=torch.float64)
    own = own_error(exact.float(), exact, exact + torch.tensor([0.0, 0.05]))
    assert own.norm == pytest.approx(0.01, rel=1e-5)
    assert own_error(exact.float(), exact, exact + 5.0).norm < 1e-6, "a reference that jumps says nothing"
    assert own_error(torch.tensor([1, 2]), exact) == OwnError()


@given(shape=st.lists(st.integers(1, 20), min_size=1, max_size=4), seed=st.integers(0, 999), scale=st.floats(0.01, 2.0))
def test_slices_are_what_their_definition_says(shape: list[int], seed: int, scale: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    exact = torch.randn(shape, generator=generator)
    found = exact + scale * torch.randn(shape, generator=generator) * torch.rand(shape[-1:], generator=generator)
    allowed = tolerance(torch.float32, OwnError(), Precision.STRICT)
    wanted = []
    for dim in range(len(shape)):
        if shape[dim] > 1 and exact.numel() // shape[dim] >= SLICE_ELEMENTS:
            own = exact.movedim(dim, 0).flatten(1)
            missed = (found - exact).movedim(dim, 0).flatten(1)
            most = SLICE * own.square().mean(1).sqrt() + 2 * allowed.norm * exact.square().mean().sqrt()
            wanted.append(bool((missed.square().mean(1).sqrt() > most).any()))
    assert wrong_slices(found, exact, allowed).tolist() == wanted
    with patch.object(comparison, "AT_ONCE", 0):  # as of a large tensor
        assert wrong_slices(found, exact, allowed).tolist() == wanted


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("most", [comparison.AT_ONCE, 0])
def test_slices_of_every_dtype_and_layout_are_looked_at(dtype: torch.dtype, most: int) -> None:
    exact = torch.randn(6, 5, 20, generator=torch.Generator().manual_seed(0)).to(dtype).transpose(0, 1)
    exact[:, 3] *= 0.25
    allowed = tolerance(dtype, OwnError(), Precision.STRICT)
    found = exact.clone()
    with patch.object(comparison, "AT_ONCE", most):
        assert wrong_slices(found, exact, allowed).tolist() == [False, False, False]
        found[:, 3] = 0.0
        assert wrong_slices(found, exact, allowed).tolist() == [False, True, False]
        found = exact.clone()
        found[:, :, 7] = torch.nan
        assert wrong_slices(found, exact, allowed).tolist() == [False, False, False]  # what is not finite is told elsewhere


def test_an_output_in_an_inputs_memory_is_right_only_where_the_references_is() -> None:
    out = torch.ones(2)
    found = [compare_round({"tensor": 0}, [out], [False], [True], [out], {}, expected(InputFate.KEPT, out, out, lent=(lent,)))
             for lent in (True, False)]  # fmt: skip
    assert [match.matches for match in found] == [True, False]
    assert found[1].detail == "output is the memory of an input, the reference's is its own"


def test_noise_may_be_another_noise_of_its_size_and_nothing_larger() -> None:
    """A mean of what was normalised: float64 gives next to nothing, float32 what its roundings leave."""
    generator = torch.Generator().manual_seed(0)
    noise, other = (1e-8 * torch.randn(64, generator=generator) for _ in range(2))
    exact = torch.zeros(64, dtype=torch.float64)
    own = own_error(noise, exact)
    assert own.noise == pytest.approx(8.0)  # eight times the reference's own error, which is all that it gives
    allowed = tolerance(torch.float32, own, Precision.STRICT)
    assert allowed.norm == own.noise and allowed.element == math.inf

    def matches(found: torch.Tensor) -> bool:
        return compare_tensor(found, noise, noise, allowed=allowed, overlapping=False, where="output").matches

    assert matches(other) and matches(torch.zeros(64)) and matches(6.0 * other)
    assert not matches(20.0 * other) and not matches(torch.full((64,), 1e-3))
    assert own_error(noise + 1.0, exact + 1.0).noise == 0.0, "a value is no noise"
    assert own_error(noise[:4], exact[:4]).noise == 0.0, "four numbers say nothing of a size"


def test_noise_is_as_large_as_tf32_makes_it_where_a_candidate_may_use_that() -> None:
    noise, exact = 1e-8 * torch.ones(16), torch.zeros(16, dtype=torch.float64)
    cores = Cores(nearest=(exact + 1e-6,), cut=exact + 4e-6)
    # 8 x 1e-8 of its own, and the larger of 3 x 1e-6 and 1.25 x 4e-6, by 1e-8
    assert own_error(noise, exact, None, cores).noise == pytest.approx(8.0 + 500.0)


def test_where_single_elements_tell_nothing_a_slice_made_by_one_does_not_either() -> None:
    """Of a softmax behind a normalisation tf32 may move a peak: one column is then another one."""
    exact = torch.ones(64, 64)
    exact[5, 3], found = 40.0, exact.clone()
    found[5, 3] = 20.0  # the column's root mean square is 5.1, the whole's 1.18; the error is 20 / 75.5 of the norm
    assert compare_tensor(found, exact, exact, allowed=Tolerance(0.3, math.inf), overlapping=False, where="output").matches
    match = compare_tensor(found, exact, exact, allowed=Tolerance(0.3, 1.0), overlapping=False, where="output")
    assert not match.matches and "slices" in match.detail
    flat = torch.zeros_like(exact)
    assert not compare_tensor(flat, exact, exact, allowed=Tolerance(0.3, math.inf), overlapping=False, where="output").matches
