"""Comparison of outputs: what passes, what does not, and with which error."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from rlkernel.evaluator.judging.comparison import Expected, bound, compare_round, compare_structure, compare_tensor, norm_error

EXACT = torch.tensor([3.0, 4.0], dtype=torch.float64)


def check(found: torch.Tensor, reference: torch.Tensor, exact: torch.Tensor | None = None, **kwargs: Any) -> tuple[bool, str]:
    exact = reference.double() if exact is None else exact
    allowed = bound(reference, exact, tf32=kwargs.pop("tf32", False))
    match = compare_tensor(found, reference, exact, **{"allowed": allowed, "overlapping": False, "where": "output", **kwargs})
    return match.matches, match.detail


def test_norm_error_by_hand() -> None:
    # difference (0, 0.05), exact norm 5: 0.01
    assert norm_error(torch.tensor([3.0, 4.05]), EXACT) == pytest.approx(0.01, rel=1e-5)


def test_bound_is_a_multiple_of_the_references_own_error_above_a_floor() -> None:
    exact = torch.tensor([3.0, 4.0], dtype=torch.float64)
    assert bound(exact.float(), exact, tf32=False) == 5e-5
    assert bound(exact.float(), exact, tf32=True) == 2e-3
    assert bound(torch.tensor([3.0, 4.05]), exact, tf32=False) == pytest.approx(8 * 0.01, rel=1e-4)


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


def test_integers_are_exact() -> None:
    assert check(torch.tensor([3, 5]), torch.tensor([3, 4])) == (False, "output: 1 of 2 elements differ")


def test_one_wrong_element_among_many_is_caught_although_the_norm_hides_it() -> None:
    reference = torch.ones(1 << 20)
    found = reference.clone()
    found[7] += 0.04  # norm error 0.04 / 1024 = 3.9e-5, below 5e-5; element error 0.04 / 2 = 0.02, above 200 * 5e-5
    assert norm_error(found, reference) < 5e-5
    assert check(found, reference) == (False, "output is wrong in single elements: relative error 2.00e-02")


def test_overlapping_and_transposed_outputs_are_refused() -> None:
    reference = torch.arange(6.0).reshape(2, 3)
    assert check(reference, reference, overlapping=True)[1] == "output is an expanded view: its elements share memory"
    transposed = reference.t().contiguous().t()
    assert check(transposed, reference)[1] == "output is strided in memory, expected contiguous"
    assert check(reference, transposed)[0], "contiguous is always fine"


def test_half_precision_in_a_float32_task_is_refused_and_tf32_follows_the_setting() -> None:
    generator = torch.Generator().manual_seed(0)
    reference = torch.randn(4096, generator=generator)
    shortcut = reference.half().float()
    assert not check(shortcut, reference)[0]
    assert check(shortcut, reference, tf32=True)[0]


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


def test_changed_inputs_are_refused_unless_the_reference_changes_them_too() -> None:
    out, before, after = torch.ones(2), torch.zeros(2), torch.full((2,), 9.0)
    exact = (out.double(),)
    untouched = Expected({"tensor": 0}, (out,), exact, (before,), other=False, stressed=False, allowed=(5e-5,))
    changed = Expected({"tensor": 0}, (out,), exact, (after,), other=False, stressed=False, allowed=(5e-5,))
    assert compare_round({"tensor": 0}, [out], [False], [before], untouched).matches
    assert compare_round({"tensor": 0}, [out], [False], [after], untouched).detail == (
        "forward changes its input 0, the reference does not"
    )
    assert compare_round({"tensor": 0}, [out], [False], [after], changed).matches
