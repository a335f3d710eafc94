"""Honest candidates that use Triton in many ways pass: each file's first line names its problem of the suite."""

from __future__ import annotations

from pathlib import Path

import pytest

from envs.problems import load_suite
from rlkernel.evaluator.pool import Pool
from rlkernel.types import Status

CODE = {path.stem: path.read_text() for path in sorted((Path(__file__).parents[1] / "red_team" / "honest").glob("*.py"))}
PROBLEMS = {problem.name: problem for problem in load_suite()}
COVERAGE = {"matmul_epilogue": (0.05, 0.9), "linear_module": (0.05, 0.9)}
"""Those that leave a library product to torch; the others do all the work in Triton."""


@pytest.mark.anyio
@pytest.mark.parametrize("name", CODE)
async def test_honest(pool: Pool, name: str) -> None:
    code = CODE[name]
    problem = PROBLEMS[code.splitlines()[0].removeprefix("# ").split(":")[0]]
    result = await pool.evaluate(problem, code)
    assert result.status is Status.CORRECT, result.detail
    assert all(launch.live for launch in result.launches)
    assert result.coverage is not None
    low, high = COVERAGE.get(name, (0.85, 1.0))
    assert low <= result.coverage <= high
    assert result.speedup is not None
    assert 0.05 < result.speedup < 50
