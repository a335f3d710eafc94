"""Honest candidates that use Triton in many ways are correct: each file's first line names its problem and what is special."""

from __future__ import annotations

import pytest

from rlkernel.evaluator.pool import Pool
from rlkernel.types import Status
from tests.red_team.cases import load

CASES = load("honest")
USUAL = (0.85, 1.0)
"""Coverage on the CPU path of candidates that do all the work in Triton; the others name a bound."""


def test_there_are_enough_of_every_level() -> None:
    assert len(CASES) >= 65
    levels = [case.problem.level for case in CASES.values()]
    assert {level: levels.count(level) >= 8 for level in (1, 2, 3)} == {1: True, 2: True, 3: True}
    assert all(Status.CORRECT in case.gpu for case in CASES.values())


@pytest.mark.anyio
@pytest.mark.parametrize("name", [name for name in CASES if "/" not in name])  # test_honest.py has the others
async def test_honest(pool: Pool, name: str) -> None:
    case = CASES[name]
    result = await pool.evaluate(case.problem, case.code)
    assert result.status in case.cpu, result.detail
    if result.status is not Status.CORRECT:
        return  # a limit of the CPU path, which the file names
    assert result.max_error is not None and result.max_error < 2e-2  # what is always allowed of bfloat16
    assert all(launch.live for launch in result.launches)
    assert result.coverage is not None
    low, high = case.coverage or USUAL
    assert low <= result.coverage <= high
    assert result.speedup is not None
    assert 0.005 < result.speedup < 100  # a grid of elements is 0.007x, a diagonal times a matrix 77x


@pytest.mark.gpu
@pytest.mark.anyio
@pytest.mark.parametrize("name", CASES)
async def test_honest_on_the_gpu(gpu_pool: Pool, name: str) -> None:
    case = CASES[name]
    result = await gpu_pool.evaluate(case.problem, case.code)
    assert result.status in case.gpu, result.detail
    if result.status is not Status.CORRECT:
        return  # a limit of the GPU path, which the file names
    assert (result.detail, result.timing) == ("", "measured")
    assert all(launch.live for launch in result.launches)
    assert result.coverage is not None
    low, high = case.coverage or (0.5, 1.0)
    assert low <= result.coverage <= high
