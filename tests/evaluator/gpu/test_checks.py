"""Comparisons that are told by one wait: which failure comes first, and what counts as one. Tensors lie on the CPU here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from rlkernel.evaluator.judging.errors.comparison import Match, quick_sums
from rlkernel.evaluator.messages.judgement import InputFate, Tolerance

X = torch.tensor([1.0, 2.0, 4.0])
LOOSE, TIGHT = Tolerance(0.1, 0.1), Tolerance(1e-6, 1e-6)


@pytest.fixture
def checks(room: Any) -> Any:
    return room.checks.Checks(SimpleNamespace(sums=quick_sums))


def test_nothing_to_check_is_a_match(checks: Any) -> None:
    assert checks.finish(1.0) == Match(True)


def test_equal_outputs_match_in_every_structure(checks: Any) -> None:
    checks.outputs({"a": X, "b": [X]}, {"a": X.clone(), "b": [X.clone()]}, [LOOSE, LOOSE])
    assert (checks.finish(1.0), checks.worst) == (Match(True), 0.0)


def test_the_error_is_relative_and_the_largest_counts(checks: Any) -> None:
    # ||(0, 0, 0.04)|| / ||(1, 2, 4)|| = 0.04 / sqrt(21)
    checks.outputs([X, X + torch.tensor([0.0, 0.0, 0.04])], [X, X], [LOOSE, LOOSE])
    match = checks.finish(1.0)
    assert match.matches
    assert match.error == pytest.approx(0.04 / 21**0.5, rel=1e-4)


@pytest.mark.parametrize(("miss", "largest"), [(0.0, 0.0), (0.0625, 0.0625), (float("nan"), float("inf"))])
def test_the_largest_difference_of_one_element_is_told(checks: Any, miss: float, largest: float) -> None:
    checks.outputs([X, X + torch.tensor([0.0, miss, 0.0])], [X, X], [LOOSE, LOOSE])
    checks.finish(1.0)
    assert checks.largest == largest


def test_a_miss_names_its_output_and_carries_the_note(checks: Any) -> None:
    checks.outputs([X, X + 1], [X, X], [TIGHT, TIGHT], note=" in eval mode")
    match = checks.finish(1.0)
    assert not match.matches and match.numeric
    assert match.detail.startswith("output 1") and match.detail.endswith(" in eval mode")


@pytest.mark.parametrize(
    ("output", "word"),
    [([X], "not a tensor"), (X[:2], "shape"), (X.double(), "float64"), (torch.ones(1).expand(3), "memory")],
)
def test_another_structure_shape_dtype_or_layout_is_no_question_of_size(checks: Any, output: Any, word: str) -> None:
    checks.outputs(output, X, [LOOSE])
    match = checks.finish(1.0)
    assert not match.matches and not match.numeric
    assert word in match.detail


@pytest.mark.parametrize("output", [{"a": X, "b": [X]}, {"a": X[:2], "b": [X]}, [X]])
def test_the_tensors_are_told_whether_they_match_or_not(checks: Any, output: Any) -> None:
    """The caller looks at where they lie, and need not search the structures again."""
    expected = {"a": X.clone(), "b": [X.clone()]}
    found, wanted = checks.outputs(output, expected, [LOOSE, LOOSE])
    assert [id(t) for t in found] == ([id(output["a"]), id(X)] if isinstance(output, dict) else [id(X)])
    assert [id(t) for t in wanted] == [id(expected["a"]), id(expected["b"][0])]


def test_failures_that_are_no_question_of_size_go_first(checks: Any) -> None:
    checks.outputs(X + 1, X, [TIGHT])
    checks.unchanged([X], [X.clone()], "input {index} is fine")
    checks.unchanged([X, X + 1], [X, X], "input {index} was changed")
    checks.unchanged([X + 2], [X], "input {index} was changed later")
    match = checks.finish(1.0)
    assert (match.detail, match.numeric) == ("input 1 was changed", False)


@pytest.mark.parametrize("other", [torch.tensor([1.0, -0.0]), torch.ones(1, 2)[0].as_strided((2,), (0,))])
def test_unchanged_is_bit_for_bit_and_in_the_same_layout(checks: Any, other: torch.Tensor) -> None:
    checks.unchanged([other], [torch.tensor([1.0, 0.0])], "input {index}")
    assert checks.finish(1.0).detail == "input 0"


def test_nan_is_unchanged_where_it_was(checks: Any) -> None:
    nan = torch.tensor([float("nan")])
    checks.unchanged([nan], [nan.clone()], "input {index}")
    assert checks.finish(1.0).matches


def test_inputs_that_the_reference_changes_may_miss_as_outputs_may(checks: Any) -> None:
    checks.changed_alike(X * (1 + 1e-7), X, "input 1 after forward")
    assert checks.finish(1.0).matches
    checks.changed_alike(X * 2, X, "input 1 after forward")
    match = checks.finish(1.0)
    assert match.detail.startswith("input 1 after forward is wrong") and not match.numeric


def test_state_that_misses_by_size_alone_is_looked_at_once_more(checks: Any) -> None:
    limit = Tolerance(1e-3, 1e-2)
    checks.state_alike(X * (1 + 1e-4), X, "running_mean after forward", limit)
    assert checks.finish(1.0).matches
    checks.state_alike(X * 2, X, "running_mean after forward", limit, " (inputs scaled by 8)")
    match = checks.finish(1.0)
    assert match.numeric and match.detail == (
        "running_mean after forward is wrong: relative error 1.00e+00, allowed 1e-03 (inputs scaled by 8)"
    )
    checks.state_alike(X[:1], X, "running_mean after forward", limit)
    assert not checks.finish(1.0).numeric
    checks.missing("running_var")
    assert checks.finish(1.0).detail == "the reference's forward changes running_var, which ModelNew does not have"


@pytest.mark.parametrize(
    ("fate", "factor", "detail"),
    [
        (InputFate.KEPT, 1.0, ""),
        (InputFate.KEPT, 2.0, "forward changes its input 0, the reference does not"),
        (InputFate.CHANGED, 2.0, ""),
        (InputFate.CHANGED, 3.0, "input 0 after forward is wrong"),
        (InputFate.RETURNED, 1.0, ""),
        (InputFate.RETURNED, 2.0, ""),
        (InputFate.RETURNED, 3.0, "input 0 after forward is wrong"),
    ],
)
def test_inputs_after_forward(checks: Any, fate: InputFate, factor: float, detail: str) -> None:
    after = X if fate is InputFate.KEPT else X * 2
    checks.inputs([X * factor], [after], [X], [fate])
    match = checks.finish(1.0)
    assert (match.matches, match.detail.startswith(detail)) == (not detail, True)


def test_an_argument_that_is_returned_is_compared_once(checks: Any) -> None:
    after, mine = X * 2, X * 2.002
    checks.inputs([mine], [after], [X], [InputFate.RETURNED], [mine], [after])
    assert checks.finish(1.0).matches
    checks.inputs([mine], [after], [X], [InputFate.RETURNED], [mine.clone()], [after])
    assert checks.finish(1.0).detail.startswith("input 0 after forward is wrong")


def test_a_stray_write_ends_everything(room: Any, checks: Any) -> None:
    guards, unused = room.guards.Guards(), room.guards.Guards()
    tensor = guards.empty((4,), (1,), torch.float32)
    checks.zones(guards, unused)
    assert checks.finish(1.0).matches
    guards._zones[0][1, 0] ^= 1  # the first byte behind the tensor
    checks.outputs(tensor, tensor.clone(), [LOOSE])
    checks.zones(unused, guards)
    with pytest.raises(room.checks.Strayed, match="a kernel writes outside its tensors"):
        checks.finish(1.0)


def test_a_difference_is_known_afterwards(checks: Any) -> None:
    same = checks.difference([X], [X.clone()])
    apart = checks.difference([X, X], [X, X + torch.tensor([0.0, 0.0, 4.2])])
    bits = checks.difference([torch.tensor([0.0, 1.0])], [torch.tensor([-0.0, 1.0])])
    lost = checks.difference([X], [X * float("inf")])
    assert checks.finish(1.0).matches
    assert same() == 0.0
    assert apart() == pytest.approx(4.2 / 21**0.5, rel=1e-4)
    assert bits() == 1e-30  # equal in value, not in bits
    assert lost() == float("inf")


def test_an_input_that_is_handed_back_is_no_result(checks: Any) -> None:
    matrix = torch.ones(2, 3)
    checks.own([matrix.t()], [matrix], [matrix.t().contiguous()], [matrix])
    assert checks.finish(1.0) == Match(False, "output is the memory of an input, the reference's is its own")


def test_an_input_may_be_handed_back_where_the_reference_does(checks: Any) -> None:
    matrix = torch.ones(2, 3)
    checks.own([matrix.t()], [matrix], [matrix.t()], [matrix])
    assert checks.finish(1.0) == Match(True)
