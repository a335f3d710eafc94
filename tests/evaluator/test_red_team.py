"""Every hostile candidate gets the verdict that its first line names, and hurts nobody."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest

from envs.problems import load_suite
from rlkernel.evaluator.pool import Pool
from rlkernel.types import Evaluation, Problem, Status

HOSTILE = sorted((Path(__file__).parents[1] / "red_team" / "hostile").glob("*.py"))
CODE = {path.stem: path.read_text() for path in HOSTILE}


@pytest.mark.anyio
@pytest.mark.parametrize("name", CODE)
async def test_status(pool: Pool, relu: Problem, name: str) -> None:
    code = CODE[name]
    expected = Status(code.splitlines()[0].removeprefix("# ").split(":")[0])
    result = await pool.evaluate(relu, code)
    assert result.status is expected, result.detail
    assert len(result.detail) <= 400
    assert result.detail.isprintable()


SUITE = {path.stem: path.read_text() for path in sorted((HOSTILE[0].parents[1] / "hostile_suite").glob("*.py"))}
PROBLEMS = {problem.name: problem for problem in load_suite()}


@pytest.mark.anyio
@pytest.mark.parametrize("name", SUITE)
async def test_status_on_a_problem_of_the_suite(pool: Pool, name: str) -> None:
    problem, status = SUITE[name].splitlines()[0].removeprefix("# ").split(":")[0].split(" ")
    result = await pool.evaluate(PROBLEMS[problem], SUITE[name])
    assert result.status is Status(status), result.detail


@pytest.mark.anyio
async def test_honest_neighbours_of_hostile_candidates_are_not_affected(pool: Pool, relu: Problem) -> None:
    honest = CODE["honest"]
    found: dict[str, Evaluation] = {}

    async def one(name: str, code: str) -> None:
        found[name] = await pool.evaluate(relu, code)

    names = ["exit_forward", "segfault", "forkbomb", "flood_fds", "fake_verdict_fds", "kill_all", "memory", "oob", "abort"]
    async with anyio.create_task_group() as tasks:
        for index, name in enumerate(names):
            tasks.start_soon(one, name, CODE[name] + f"\n# neighbour {index}\n")
            tasks.start_soon(one, f"honest {index}", honest + f"\n# neighbour {index}\n")
    neighbours = [result for name, result in found.items() if name.startswith("honest")]
    assert [result.status for result in neighbours] == [Status.CORRECT] * len(names)
    assert {round(result.speedup or 0, 9) for result in neighbours} == {round(neighbours[0].speedup or 0, 9)}


@pytest.mark.anyio
async def test_a_crash_is_seen_when_it_happens_not_at_a_timeout(pool: Pool, relu: Problem) -> None:
    await pool.evaluate(relu, CODE["segfault"] + "\n# warm\n")
    result = await pool.evaluate(relu, CODE["segfault"] + "\n# again\n")
    assert result.status is Status.CRASH
    assert result.seconds.total < 1.0


def test_nothing_was_written_by_a_hostile_candidate() -> None:
    assert not os.path.exists("/tmp/pwned")
    assert not os.path.exists("/tmp/pwned_kernel")
