"""What is measured of a problem once per card. The runner is played here."""

from __future__ import annotations

from typing import Any

import pytest

from rlkernel.errors import BrokenReference, EvaluatorFailed
from rlkernel.evaluator.cards.baselines import BaselineStore
from rlkernel.evaluator.cards.gpu_runner import RunnerLost
from rlkernel.evaluator.cards.kept_times import KeptTimes
from rlkernel.evaluator.cards.studies import Studies
from rlkernel.evaluator.config import EvaluatorConfig
from rlkernel.evaluator.messages.endings import Broken, Failed
from rlkernel.evaluator.messages.gpu import Known, Study, Unstressed
from rlkernel.evaluator.processes.fork_server import ChildDied
from rlkernel.types import Precision, Status
from tests.evaluator.cards.played import BRIEF, KNOWN, RELU, PlayedRunner

LOST = Unstressed(lost=True)
pytestmark = pytest.mark.anyio


async def study(runner: Any) -> Known:
    config = EvaluatorConfig()
    return await Studies(config, KeptTimes(BaselineStore(None), precision=Precision.PYTORCH)).study(runner, RELU, BRIEF)


async def test_a_study_that_loses_the_gpu_under_stress_is_repeated_without() -> None:
    runner = PlayedRunner(0, [LOST, KNOWN])
    assert await study(runner) == KNOWN
    assert [question.stress for question, _ in runner.asked if isinstance(question, Study)] == [True, False]


@pytest.mark.parametrize(
    ("answers", "error", "line"),
    [
        ([Broken("mine/relu: no")], BrokenReference, "^mine/relu: no$"),
        ([LOST, Broken("mine/relu: no", lost=True)], BrokenReference, "^mine/relu: no$"),
        ([LOST, LOST], EvaluatorFailed, "^mine/relu: .* on the GPU: it lost the GPU twice$"),
        ([RunnerLost(None)], EvaluatorFailed, "^mine/relu: the process that runs .* was silent for more than 120 s$"),
        ([RunnerLost(ChildDied(None, 9))], EvaluatorFailed, "^mine/relu: the process that runs .* was killed by SIGKILL$"),
        ([Failed(Status.CRASH, "internal error")], EvaluatorFailed, "^mine/relu: .*: internal error$"),
    ],
)
async def test_a_study_without_an_answer_names_the_problem(answers: list[Any], error: type[Exception], line: str) -> None:
    with pytest.raises(error, match=line):
        await study(PlayedRunner(0, answers))
