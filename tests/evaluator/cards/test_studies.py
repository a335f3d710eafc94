"""What is measured of a problem once for equal cards. The runners are played here."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from rlkernel.errors import BrokenReference, EvaluatorFailed
from rlkernel.evaluator.cards.baselines import BaselineStore
from rlkernel.evaluator.cards.gpu_runner import RunnerLost
from rlkernel.evaluator.cards.kept_studies import KeptStudies
from rlkernel.evaluator.cards.kept_times import KeptTimes
from rlkernel.evaluator.cards.studies import Studies
from rlkernel.evaluator.config import EvaluatorConfig
from rlkernel.evaluator.messages.endings import Broken, Failed
from rlkernel.evaluator.messages.gpu import CompiledTimes, Known, Study, Unstressed
from rlkernel.evaluator.processes.child import ChildDied
from rlkernel.types import Precision, Status
from tests.evaluator.cards.played import BRIEF, KNOWN, RELU, PlayedRunner

LOST = Unstressed(lost=True)
OTHER = replace(KNOWN, gaps=True)
pytestmark = pytest.mark.anyio


def studies(path: Path | None = None, config: EvaluatorConfig | None = None) -> Studies:
    """What begins with a process; with a path, what another one has found is there."""
    precision = Precision.PYTORCH
    kept = KeptStudies(path, precision=precision)
    return Studies(config or EvaluatorConfig(), KeptTimes(BaselineStore(None), precision=precision), kept)


async def study(runner: Any, those: Studies | None = None) -> Known:
    return await (those or studies()).study(runner, RELU, BRIEF)


async def test_a_study_that_loses_the_gpu_under_stress_is_repeated_without() -> None:
    runner = PlayedRunner(0, [LOST, LOST, KNOWN])
    assert await study(runner) == KNOWN
    asked = [(question.stress, question.shown) for question, _ in runner.asked if isinstance(question, Study)]
    assert asked == [(True, True), (True, False), (False, False)]


async def test_a_study_that_loses_the_runner_is_repeated_without_what_no_author_draws() -> None:
    runner = PlayedRunner(0, [RunnerLost(None), KNOWN])
    assert await study(runner) == KNOWN
    assert [question.shown for question, _ in runner.asked if isinstance(question, Study)] == [True, False]


@pytest.mark.parametrize(
    ("answers", "error", "line"),
    [
        ([Broken("mine/relu: no")], BrokenReference, "^mine/relu: no$"),
        ([LOST, Broken("mine/relu: no", lost=True)], BrokenReference, "^mine/relu: no$"),
        ([LOST, LOST, LOST], EvaluatorFailed, "^mine/relu: .* on the GPU: it lost the GPU three times$"),
        ([RunnerLost(None)] * 3, EvaluatorFailed, "^mine/relu: the process that runs .* was silent for more than 120 s$"),
        ([RunnerLost(ChildDied(None, 9))] * 3, EvaluatorFailed, "^mine/relu: the process that runs .* was killed by SIGKILL$"),
        ([Failed(Status.CRASH, "internal error")], EvaluatorFailed, "^mine/relu: .*: internal error$"),
    ],
)
async def test_a_study_without_an_answer_names_the_problem(answers: list[Any], error: type[Exception], line: str) -> None:
    with pytest.raises(error, match=line):
        await study(PlayedRunner(0, answers))


async def test_one_study_serves_equal_cards_and_no_others() -> None:
    those = studies()
    first, equal, newer = PlayedRunner(0, [KNOWN]), PlayedRunner(1), PlayedRunner(2, [OTHER])
    newer.gpu = replace(newer.gpu, driver="590.1")
    assert [await study(runner, those) for runner in (first, equal, newer)] == [KNOWN, KNOWN, OTHER]
    assert [len(runner.asked) for runner in (first, equal, newer)] == [1, 0, 1]


async def test_what_another_process_has_studied_is_known_here(tmp_path: Path) -> None:
    path = tmp_path / "cache" / "studies.jsonl"
    runner, equal, newer = PlayedRunner(0, [KNOWN]), PlayedRunner(1), PlayedRunner(2, [OTHER])
    newer.gpu = replace(newer.gpu, driver="590.1")
    already_open = studies(path)
    assert await study(runner, studies(path)) == KNOWN
    assert await study(equal, studies(path)) == await study(equal, already_open) == KNOWN
    assert await study(newer, studies(path)) == OTHER
    assert [len(one.asked) for one in (runner, equal, newer)] == [1, 0, 1]


@pytest.mark.parametrize("answers", [[LOST, KNOWN], [replace(KNOWN, hurried=True)]], ids=["lost", "hurried"])
async def test_a_study_that_lacks_rounds_holds_for_its_process_alone(tmp_path: Path, answers: list[Any]) -> None:
    path = tmp_path / "studies.jsonl"
    those = studies(path)
    assert await study(PlayedRunner(0, answers), those) == answers[-1]
    assert await study(PlayedRunner(0), those) == answers[-1]
    assert not path.exists()
    assert await study(PlayedRunner(0, [OTHER]), studies(path)) == OTHER


async def test_another_codes_studies_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "studies.jsonl"
    await study(PlayedRunner(0, [KNOWN]), studies(path))
    monkeypatch.setattr("rlkernel.evaluator.cards.kept_studies.verdict_version", lambda: "another")
    assert await study(PlayedRunner(0, [OTHER]), studies(path)) == OTHER


def test_what_nobody_can_ask_for_takes_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file grows with each code that ran, and a process reads what it has written itself."""
    path, gpu = tmp_path / "studies.jsonl", PlayedRunner(0).gpu
    others = [replace(RELU, source=f"{RELU.source}# {number}") for number in range(3)]
    with monkeypatch.context() as before:
        before.setattr("rlkernel.evaluator.cards.kept_studies.verdict_version", lambda: "another")
        KeptStudies(path, precision=Precision.PYTORCH).put(gpu, others[0], KNOWN, lasting=True)
    KeptStudies(path, precision=Precision.STRICT).put(gpu, others[0], KNOWN, lasting=True)
    kept, beside = (KeptStudies(path, precision=Precision.PYTORCH) for _ in range(2))
    kept.put(gpu, others[0], KNOWN, lasting=True)
    beside.put(gpu, others[1], OTHER, lasting=True)
    assert kept.get(gpu, others[2]) is None
    assert len(kept._unread) == 1, "what another process has found"
    assert kept.get(gpu, others[1]) == OTHER
    assert not kept._unread


async def test_another_hosts_studies_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """How long a host draws inputs bounds a candidate's stay."""
    path = tmp_path / "studies.jsonl"
    await study(PlayedRunner(0, [KNOWN]), studies(path))
    monkeypatch.setattr("rlkernel.evaluator.cards.kept_studies.host", lambda: "a slower one")
    assert await study(PlayedRunner(0, [OTHER]), studies(path)) == OTHER


async def test_damaged_studies_are_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "studies.jsonl"
    await study(PlayedRunner(0, [KNOWN]), studies(path))
    row = json.loads(path.read_text())
    del row["known"]["fates"]
    path.write_text(json.dumps(row) + "\n")
    assert await study(PlayedRunner(0, [OTHER]), studies(path)) == OTHER
    assert await study(PlayedRunner(0), studies(path)) == OTHER, "the last row of a key counts"


async def test_an_equal_card_waits_for_a_study_and_takes_over_one_that_fails() -> None:
    class Slow(PlayedRunner):
        async def ask(self, question: bytes, seconds: float, *answers: type[Any]) -> Any:
            await go_on.wait()
            return await super().ask(question, seconds, *answers)

    for answer, asked in ((KNOWN, 0), (Failed(Status.CRASH, "internal error"), 1)):
        those, go_on = studies(), anyio.Event()
        first, equal = Slow(0, [answer]), PlayedRunner(1, [KNOWN])
        found: list[Known | str] = []

        async def one(runner: PlayedRunner, those: Studies = those, found: list[Known | str] = found) -> None:
            try:
                found.append(await study(runner, those))
            except EvaluatorFailed as error:
                found.append(str(error))

        async with anyio.create_task_group() as tasks:
            for runner in (first, equal):
                tasks.start_soon(one, runner)
            await anyio.wait_all_tasks_blocked()
            assert equal.asked == []
            go_on.set()
        assert len(equal.asked) == asked
        assert KNOWN in found


async def test_torch_compile_is_timed_on_every_card() -> None:
    class Compiling(PlayedRunner):
        async def time_compiled(self, question: bytes, seconds: float) -> CompiledTimes:
            return CompiledTimes(compiled_us=1.0 + self.gpu.index, eager_us=9.0)

    config = EvaluatorConfig(compiled=True)
    those = studies(config=config)
    runners: list[Any] = [Compiling(0, [KNOWN]), Compiling(1)]
    for runner in runners:
        await study(runner, those)
    assert [those.compiled_us(runner, RELU) for runner in runners] == [1.0, 2.0]
