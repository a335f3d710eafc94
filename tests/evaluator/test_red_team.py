"""Every hostile candidate gets the verdict that its first line names, and hurts nobody; the catalogue is covered."""

from __future__ import annotations

import os

import anyio
import pytest

from rlkernel.evaluator.pool import Pool
from rlkernel.types import Evaluation, Problem, Status
from tests.red_team.cases import GROUPS, Case, load, parse
from tests.red_team.cases import relu as relu_problem

CASES = load("hostile")
ENDLESS = [name for name, case in CASES.items() if case.cpu == {Status.TIMEOUT}]
"""Judged together and with short limits, because each takes all of its time."""
ABSENT = {
    10: "a compiler's text is traced as any candidate's; honest/inductor_call is one",
    11: "policy: a kernel may use Triton's own primitives; honest/cumsum_scan and honest/sort_rows do",
    22: "no problem trains a model",
    50: "both sides are replayed without autograd; the branch on the grad mode is 6",
    52: "answered where problems are made: rlkernel/evaluator/judging/degenerate.py and its test",
}
"""Numbers of the catalogue that no hostile file tries, and why."""


def assert_expected(case: Case, device: str, result: Evaluation) -> None:
    assert result.status in case.expected(device), result.detail
    assert len(result.detail) <= 400
    assert result.detail.isprintable()
    if result.correct and case.problem.name == "relu":  # its work is honest, so it cannot be faster than torch's own relu
        assert result.speedup is not None and result.speedup < 1.5
    if case.speedup is not None and result.timing == "modelled":
        assert result.speedup is not None and result.speedup < case.speedup
    if case.coverage is not None and result.correct:
        assert result.coverage is not None
        assert case.coverage[0] <= result.coverage <= case.coverage[1]


@pytest.mark.anyio
@pytest.mark.parametrize("name", [name for name in CASES if name not in ENDLESS])
async def test_status(pool: Pool, name: str) -> None:
    assert_expected(CASES[name], "cpu", await pool.evaluate(CASES[name].problem, CASES[name].code))


@pytest.mark.anyio
async def test_what_never_ends_is_ended(hasty_pool: Pool) -> None:
    found: dict[str, Evaluation] = {}

    async def one(name: str) -> None:
        found[name] = await hasty_pool.evaluate(CASES[name].problem, CASES[name].code)

    async with anyio.create_task_group() as tasks:
        for name in ENDLESS:
            tasks.start_soon(one, name)
    for name in ENDLESS:
        assert_expected(CASES[name], "cpu", found[name])


@pytest.mark.gpu
@pytest.mark.anyio
@pytest.mark.parametrize("name", CASES)
async def test_status_on_the_gpu(gpu_pool: Pool, name: str) -> None:
    assert_expected(CASES[name], "gpu", await gpu_pool.evaluate(CASES[name].problem, CASES[name].code))


def test_there_are_hacks_of_every_group_and_every_number_is_tried_or_explained() -> None:
    tried = {number for case in CASES.values() for number in case.catalogue}
    numbers = {number for group in GROUPS.values() for number in group}
    assert tried | set(ABSENT) == numbers
    assert tried & set(ABSENT) == set()
    hacks = {
        group: sum(any(number in range_ for number in case.catalogue) for case in CASES.values())
        for group, range_ in GROUPS.items()
    }
    assert min(hacks.values()) >= 5, hacks
    assert sum(bool(case.catalogue) for case in CASES.values()) >= 180


def test_first_lines() -> None:
    problems = {"relu": relu_problem()}
    line = "# relu correct cpu=implausible gpu=crash|timeout coverage<0.2 speedup<1.5 catalogue=3,14: why: because\npass\n"
    case = parse("x", line, problems)
    assert (case.cpu, case.gpu) == ({Status.IMPLAUSIBLE}, {Status.CRASH, Status.TIMEOUT})
    assert (case.coverage, case.speedup, case.catalogue, case.why) == ((0.0, 0.2), 1.5, (3, 14), "why: because")
    assert parse("x", "# relu no_kernel: why", problems).expected("gpu") == {Status.NO_KERNEL}
    for wrong in ("# relu: why", "# relu fine: why", "# level1/none correct: why", "# relu correct gpu=: why", "# relu correct:"):
        with pytest.raises(ValueError):
            parse("x", wrong, problems)


def test_what_is_right_is_either_harmless_or_low_in_coverage() -> None:
    """A hostile file that may be judged correct says why, and names what it tries."""
    right = [case for case in CASES.values() if Status.CORRECT in case.cpu | case.gpu]
    assert [case.name for case in right if not case.catalogue and case.name != "hostile/honest"] == []


@pytest.mark.anyio
async def test_honest_neighbours_of_hostile_candidates_are_not_affected(pool: Pool, relu: Problem) -> None:
    honest = CASES["honest"].code
    found: dict[str, Evaluation] = {}

    async def one(name: str, code: str) -> None:
        found[name] = await pool.evaluate(relu, code)

    names = ["exit_forward", "segfault", "forkbomb", "flood_fds", "fake_verdict_fds", "kill_all", "memory", "oob", "abort"]
    async with anyio.create_task_group() as tasks:
        for index, name in enumerate(names):
            tasks.start_soon(one, name, CASES[name].code + f"\n# neighbour {index}\n")
            tasks.start_soon(one, f"honest {index}", honest + f"\n# neighbour {index}\n")
    neighbours = [result for name, result in found.items() if name.startswith("honest")]
    assert [result.status for result in neighbours] == [Status.CORRECT] * len(names)
    assert {round(result.speedup or 0, 9) for result in neighbours} == {round(neighbours[0].speedup or 0, 9)}


@pytest.mark.gpu
@pytest.mark.anyio
async def test_honest_neighbours_on_the_gpu_are_not_affected(gpu_pool: Pool, relu: Problem) -> None:
    honest = CASES["honest"].code
    found: dict[str, Evaluation] = {}

    async def one(name: str, code: str) -> None:
        found[name] = await gpu_pool.evaluate(relu, code)

    names = [
        "exit_forward",
        "segfault",
        "gpu_illegal_address",
        "gpu_write_before",
        "gpu_memory_hog",
        "loop_loaded",
        "oob",
        "abort",
    ]
    async with anyio.create_task_group() as tasks:
        for index, name in enumerate(names):
            tasks.start_soon(one, name, CASES[name].code + f"\n# neighbour {index}\n")
            tasks.start_soon(one, f"honest {index}", honest + f"\n# neighbour {index}\n")
    neighbours = [result for name, result in found.items() if name.startswith("honest")]
    assert [(result.status, result.detail) for result in neighbours] == [(Status.CORRECT, "")] * len(names)


@pytest.mark.anyio
async def test_a_crash_is_seen_when_it_happens_not_at_a_timeout(pool: Pool, relu: Problem) -> None:
    await pool.evaluate(relu, CASES["segfault"].code + "\n# warm\n")
    result = await pool.evaluate(relu, CASES["segfault"].code + "\n# again\n")
    assert result.status is Status.CRASH
    assert result.seconds.total < pool.config.limits.trace_seconds


def test_nothing_was_written_by_a_hostile_candidate() -> None:
    assert not os.path.exists("/tmp/pwned")
    assert not os.path.exists("/tmp/pwned_kernel")
    assert not os.path.exists("/dev/shm/pwned")
