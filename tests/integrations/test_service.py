"""The evaluator for callers without an event loop, or with one of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from envs.problems import load_suite
from rlkernel.errors import BrokenReference, UsageError
from rlkernel.integrations.service import Service, open_service
from rlkernel.types import Evaluation, Problem
from tests.executed_page import ROOT
from tests.integrations.scripted_judge import Judge

PROBLEM = load_suite()[0]


@pytest.fixture
def judge() -> Judge:
    return Judge()


@pytest.fixture
def service(judge: Judge) -> Iterator[Service]:
    with open_service(judge) as opened:
        yield opened


def test_threads_and_loops_share_one_evaluator(judge: Judge, service: Service) -> None:
    judge.together = 4
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda n: service.evaluate(PROBLEM, f"# {n}").speedup, (1, 2, 3, 4)))
    assert found == [1, 2, 3, 4]


def test_a_closed_service_says_so(judge: Judge) -> None:
    with open_service(judge) as service:
        pass
    with pytest.raises(RuntimeError):
        service.evaluate(PROBLEM, None)


def test_what_the_evaluator_raises_reaches_the_caller(service: Service) -> None:
    with pytest.raises(BrokenReference, match="p: no Model"):
        service.evaluate(Problem("p", 0, "train", "broken"), None)


def test_what_is_no_problem_or_no_candidate_is_named(judge: Judge, service: Service) -> None:
    with pytest.raises(UsageError, match=r"^the problem is a str: give an rlkernel\.types\.Problem, e\.g\. Problem\(name, 0"):
        service.evaluate("class Model: ...", "# 1")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"^the candidate is a list: give the text of its file, or None"):
        asyncio.run(service.evaluate_async(PROBLEM, ["# 1"]))  # type: ignore[arg-type]
    assert service.evaluate(PROBLEM, "# 1").speedup is not None


def test_a_cancelled_caller_cancels_its_evaluation_and_no_other(judge: Judge, service: Service) -> None:
    judge.together = 2  # a lone evaluation waits

    async def body() -> Evaluation:
        lone = asyncio.ensure_future(service.evaluate_async(PROBLEM, "# 1"))
        await asyncio.to_thread(judge.began.wait)
        lone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await lone
        return await service.evaluate_async(PROBLEM, "# 2")

    assert asyncio.run(body()).speedup == 2.0
    assert judge.cancelled == 1


def test_the_examples_of_the_page_work_as_they_stand(capsys: pytest.CaptureFixture[str]) -> None:
    section = (ROOT / "docs" / "evaluator.md").read_text(encoding="utf-8").split("## For other trainers")[1]
    names: dict[str, Any] = {}
    for block in section.split("```python\n")[1:]:
        exec(block.split("```")[0], names)
    status, speedup, again = capsys.readouterr().out.split()
    assert (status, again) == ("correct", "correct") and float(speedup) > 1
