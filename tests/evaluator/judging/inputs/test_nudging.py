"""Inputs moved by their own rounding."""

from __future__ import annotations

from typing import Any

import torch

from rlkernel.evaluator.judging.inputs.nudging import is_finer, is_finest, nudged


def test_nudged_inputs_move_by_half_of_their_rounding() -> None:
    x = torch.full((1000,), 2.0)
    (moved, kept) = nudged([x.bfloat16(), torch.tensor([3])])
    assert moved.dtype == torch.float64
    # bfloat16 resolves 2^-7: half of that is 0.0039
    assert float((moved / 2.0 - 1).abs().max()) <= 2**-8
    assert float((moved / 2.0 - 1).abs().max()) > 0.9 * 2**-8
    assert kept.tolist() == [3]


def test_an_output_is_finer_than_its_coarsest_input() -> None:
    single, half, whole = torch.ones(2), torch.ones(2, dtype=torch.bfloat16), torch.ones(2, dtype=torch.int64)
    assert is_finer(single, [single, half]) and is_finer(single.double(), [single]) and is_finer(half.half(), [half])
    assert not (is_finer(single, [single]) or is_finer(half, [single, half]) or is_finer(single, [whole]))
    assert not (is_finer(whole, [half]) or is_finer(single, []))
    assert is_finest(single, [half, whole]) and not is_finest(single, [single, half])


def test_for_a_finer_output_coarse_inputs_stay() -> None:
    single, half = torch.ones(100), torch.ones(100, dtype=torch.bfloat16)
    for output, moves in ((torch.float32, [True, False]), (torch.bfloat16, [True, True]), (torch.float64, [False, False])):
        moved = nudged([single, half], output=output)
        assert [bool((tensor != 1.0).any()) for tensor in moved] == moves
        assert all(tensor.dtype is torch.float64 for tensor in moved)


def test_inputs_that_are_held_stay_as_they_are() -> None:
    given: list[Any] = [torch.randn(64), {"b": torch.randn(64)}, torch.randn(64)]
    found = nudged(given, held=(0, 2))
    assert torch.equal(found[0], given[0].double()) and torch.equal(found[2], given[2].double())
    assert not torch.equal(found[1]["b"], given[1]["b"].double())


def test_numbers_that_are_meant_stay_as_they_are() -> None:
    x = torch.tensor([0.25, 0.3, -0.25])
    (moved,) = nudged([x], meant=(0.25,))
    assert moved[0] == 0.25 and moved[1] != x[1].double() and moved[2] != -0.25
