"""Reductions and scans by halves: golden values, order, and the work that they take."""

from __future__ import annotations

import numpy as np
import pytest

from rlkernel.evaluator.cpu.reductions import Array, Combine, halve, scan


def counted(combine: Combine) -> tuple[Combine, list[int]]:
    calls: list[int] = []

    def call(left: list[Array], right: list[Array]) -> list[Array]:
        calls.append(left[0].shape[0])
        return combine(left, right)

    return call, calls


def affine(left: list[Array], right: list[Array]) -> list[Array]:
    """x -> a x + b, first left then right: associative, and not commutative."""
    (a, b), (c, d) = left, right
    return [c * a, c * b + d]


def test_reduction_keeps_the_order() -> None:
    a, b = np.array([2.0, 3.0, 5.0, 7.0]), np.array([1.0, 1.0, 1.0, 1.0])
    # ((2x + 1) * 3 + 1) * 5 + 1) * 7 + 1 at x: 210 x + 105 + 35 + 7 + 1
    assert [float(v[0]) for v in halve([a, b], affine)] == [210.0, 148.0]


def test_scan_keeps_the_order() -> None:
    a, b = np.array([2.0, 3.0, 5.0, 7.0]), np.array([1.0, 1.0, 1.0, 1.0])
    slopes, offsets = scan([a, b], affine)
    assert slopes.tolist() == [2.0, 6.0, 30.0, 210.0]
    assert offsets.tolist() == [1.0, 4.0, 21.0, 148.0]


@pytest.mark.parametrize("size", [1, 2, 8, 64])
def test_scan_of_rows_is_cumsum(size: int) -> None:
    values = np.arange(3.0 * size).reshape(size, 3)
    assert np.array_equal(scan([values], lambda x, y: [x[0] + y[0]])[0], np.cumsum(values, axis=0))


def test_calls_are_few() -> None:
    combine, calls = counted(lambda x, y: [x[0] + y[0]])
    halve([np.ones(1024)], combine)
    assert calls == [512, 256, 128, 64, 32, 16, 8, 4, 2, 1]
    calls.clear()
    scan([np.ones(1024)], combine)
    assert sum(calls) == 2 * 1023  # down and up
