"""Runs side by side: the same runs as one after another, one evaluator for all, and nothing left behind."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
import torch

from rlkernel.config import Run
from rlkernel.errors import BrokenReference, EvaluatorEnded, EvaluatorFailed, UsageError, explained
from rlkernel.evaluator.cards.gpus import Gpu
from rlkernel.evaluator.config import GIB, EvaluatorConfig
from rlkernel.interfaces import CardEvaluator
from rlkernel.runs import directory as rundir
from rlkernel.training import command, loop, preflight
from rlkernel.training.placement import CONTEXT_BYTES, SIDE_BY_SIDE, EvaluatorDemand, Placement
from rlkernel.training.preflight import machine_bytes, room_of_card
from rlkernel.training.side_by_side import evaluators as evaluators_module
from rlkernel.training.side_by_side import host
from rlkernel.training.side_by_side.channel import Assignment, Channel, Ended, open_channel
from rlkernel.training.side_by_side.evaluators import Evaluators
from rlkernel.training.side_by_side.far_evaluator import FarEvaluator
from rlkernel.training.side_by_side.host import _Deal, _Trainer, portable
from rlkernel.training.trainer import KernelGRPOTrainer
from rlkernel.types import Evaluation, Problem, Status
from tests.echo import ScriptedEvaluator
from tests.training.mute import Mute, mute_jobs

PROBLEM = Problem("p", 1, "train", "")


@dataclass
class Card(CardEvaluator):
    """An evaluator with a card that one at a time may hold. `answers` say what is judged of which code."""

    answers: dict[str | None, Evaluation | Exception] = field(default_factory=dict)
    shares: bool = True
    notices: tuple[str, ...] = ()
    waited_seconds: tuple[float, float] | None = (1.0, 2.0)
    holders: list[int] = field(default_factory=list)
    """How many held the card, whenever somebody began to."""
    config: EvaluatorConfig = field(default_factory=EvaluatorConfig)
    _held: int = 0
    _queue: anyio.Lock = field(default_factory=anyio.Lock)

    def describe(self) -> dict[str, Any]:
        return {"class": "Card"}

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[None]:
        async with self._queue:
            self._held += 1
            self.holders.append(self._held)
            yield
            self._held -= 1

    async def evaluate(self, problem: Problem, code: str | None) -> Evaluation:
        answer = self.answers[code]
        if isinstance(answer, Exception):
            raise answer
        return answer


def together(trainer: Callable[[FarEvaluator, Channel], Coroutine[Any, Any, None]], card: Card) -> Ended:
    """What `trainer` does as a trainer process would, against the command's side of the channel."""
    assignment = Assignment(
        None, Path("here"), 1, None, {}, None, EvaluatorConfig(), {"class": "Card"}, card.shares  # type: ignore[arg-type]
    )  # fmt: skip

    async def process(sock: socket.socket) -> None:
        async with open_channel(sock) as channel:
            assert await channel.receive() == assignment
            far = FarEvaluator(channel, assignment)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(listen, far, channel)
                await trainer(far, channel)
                tasks.cancel_scope.cancel()
            await channel.send(Ended(True))

    async def listen(far: FarEvaluator, channel: Channel) -> None:
        while True:
            far.hear(await channel.receive())

    async def both() -> Ended:
        ours, theirs = socket.socketpair()
        async with open_channel(ours) as channel, anyio.create_task_group() as tasks:
            tasks.start_soon(process, theirs)
            return await _Trainer(channel, card).train(assignment)

    return anyio.run(both)


def test_a_far_evaluator_answers_as_the_near_one_does() -> None:
    fine = Evaluation(Status.CORRECT, "fine", speedup=1.5, coverage=0.25, timing="modelled")
    card = Card({"a": fine, "b": BrokenReference("p.py: no Model"), "c": EvaluatorFailed("the oracle was killed")})

    async def trainer(far: FarEvaluator, channel: Channel) -> None:
        assert far.waited_seconds is None and far.describe() == {"class": "Card"} and far.shares
        assert await far.evaluate(PROBLEM, "a") == fine
        assert far.waited_seconds == (1.0, 2.0)
        with pytest.raises(BrokenReference, match=r"^p\.py: no Model$"):
            await far.evaluate(PROBLEM, "b")
        with pytest.raises(EvaluatorFailed, match=r"^the oracle was killed$"):
            await far.evaluate(PROBLEM, "c")

    assert together(trainer, card) == Ended(True)


def test_one_at_a_time_holds_the_card_and_whoever_is_cancelled_gives_it_back() -> None:
    card, held = Card(), []

    async def trainer(far: FarEvaluator, channel: Channel) -> None:
        async def take(name: str, while_held: Callable[[], Coroutine[Any, Any, None]]) -> None:
            async with far.lease():
                held.append(name)
                await while_held()

        async with anyio.create_task_group() as first:
            first.start_soon(take, "cancelled", anyio.sleep_forever)
            while not held:
                await anyio.lowlevel.checkpoint()
            async with anyio.create_task_group() as second:
                second.start_soon(take, "never", anyio.sleep_forever)  # cancelled while it waits
                await anyio.wait_all_tasks_blocked()
                second.cancel_scope.cancel()
            first.cancel_scope.cancel()
        async with anyio.create_task_group() as third:
            for name in "xyz":
                third.start_soon(take, name, anyio.lowlevel.checkpoint)

    together(trainer, card)
    assert held[0] == "cancelled" and sorted(held[1:]) == ["x", "y", "z"]
    assert set(card.holders) == {1}


def test_without_a_shared_card_a_lease_asks_nobody() -> None:
    card = Card(shares=False)

    async def trainer(far: FarEvaluator, channel: Channel) -> None:
        async with far.lease():
            assert far.waited_seconds is None

    together(trainer, card)
    assert card.holders == []


def test_whoever_waits_for_a_verdict_is_told_when_the_command_is_gone() -> None:
    async def main() -> None:
        ours, theirs = socket.socketpair()
        async with open_channel(theirs) as channel:
            far = FarEvaluator(channel, None)  # type: ignore[arg-type]
            async with anyio.create_task_group() as tasks:

                async def ask() -> None:
                    with pytest.raises(EvaluatorEnded, match=r"^the command that judges for this run has ended$"):
                        await far.evaluate(PROBLEM, "a")

                tasks.start_soon(ask)
                await anyio.wait_all_tasks_blocked()
                ours.close()
                far.hear_end()
            with pytest.raises(EvaluatorEnded, match=r"^the command that judges for this run has ended$"):
                await far.evaluate(PROBLEM, "b")  # nobody can be asked any more

    anyio.run(main)


def test_an_evaluator_stays_open_while_a_run_uses_or_awaits_it(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []

    @asynccontextmanager
    async def opening(demand: EvaluatorDemand, cache_dir: Path | None) -> AsyncIterator[Card]:
        said.append(f"open {demand.device}")
        yield Card()
        said.append(f"close {demand.device}")

    monkeypatch.setattr(evaluators_module, "open_evaluator", opening)
    one, other = EvaluatorDemand("a"), EvaluatorDemand("b")
    expected = {one}

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            evaluators = Evaluators(tasks, None, lambda demand: demand in expected)
            async with evaluators.use(one) as first, evaluators.use(other) as second, evaluators.use(one) as third:
                assert first is third and first is not second
            await anyio.wait_all_tasks_blocked()
            assert said == ["open a", "open b", "close b"]  # another run will want the first
            expected.clear()
            async with evaluators.use(one) as fourth:
                assert fourth is first

    anyio.run(main)
    assert said == ["open a", "open b", "close b", "close a"]


def test_an_interruption_closes_an_evaluator_after_those_it_judges_for(monkeypatch: pytest.MonkeyPatch) -> None:
    said = list[str]()

    @asynccontextmanager
    async def opening(*arguments: Any) -> AsyncIterator[Card]:
        try:
            yield Card()
        finally:
            said.append("closed")

    monkeypatch.setattr(evaluators_module, "open_evaluator", opening)

    async def judged(evaluators: Evaluators) -> None:
        async with evaluators.use(EvaluatorDemand("a")):
            try:
                await anyio.sleep_forever()
            finally:  # as a pool ends an exchange with an oracle
                with anyio.CancelScope(shield=True):
                    await anyio.sleep(0.1)
                said.append("judged")

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            evaluators = Evaluators(tasks, None, lambda demand: True)
            tasks.start_soon(judged, evaluators)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()

    anyio.run(main)
    assert said == ["judged", "closed"]


def test_no_run_begins_after_the_limit_but_the_first(run: Run, tmp_path: Path) -> None:
    jobs = [(replace(run, seed=seed), tmp_path / str(seed)) for seed in range(3)]
    late = _Deal(list(jobs), None, 1, time.monotonic(), {})
    assert late.next() == jobs[0] and late.next() is None and late.stopped
    early = _Deal(list(jobs), None, 1, time.monotonic() + 1000, {})
    assert [early.next(), early.next(), early.next(), early.next()] == [*jobs, None] and not early.stopped
    stopped = _Deal(list(jobs), None, 1, None, {})
    stopped.next()
    stopped.stopped = True  # the first one has reached its limit
    assert stopped.next() is None


def test_a_class_that_only_this_process_knows_is_no_matter_for_others(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    script = Problem("p", 1, "train", 'if __name__ == "__main__":\n    main()\n')
    assert portable([(replace(run, problems=(*run.problems, script)), Path("a"))])

    @dataclass(frozen=True)
    class Local(Mute):
        pass

    assert not portable([(replace(run, environment=Local()), Path("a"))])
    monkeypatch.setattr(Mute, "__module__", "__main__")
    monkeypatch.setattr(sys.modules["__main__"], "Mute", Mute, raising=False)
    assert not portable([(replace(run, environment=Mute()), Path("a"))])


def test_trainers_have_equal_parts_of_card_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    card = Gpu(0, "GPU-0", "", 80 * GIB, "")
    alone, whole = Placement("cuda:0", card, shared=False), machine_bytes()
    # Half of a shared card is the evaluations', and each process has a context.
    beside = Placement("cuda:0", card, shared=True)
    assert (alone.own_bytes(EvaluatorConfig()), beside.own_bytes(EvaluatorConfig())) == (
        80 * GIB,
        40 * GIB - 2 * CONTEXT_BYTES,
    )
    monkeypatch.setenv(SIDE_BY_SIDE, "2")
    assert (alone.own_bytes(EvaluatorConfig()), beside.own_bytes(EvaluatorConfig())) == (38 * GIB, 17 * GIB)
    assert machine_bytes() == whole // 2
    room = room_of_card(80, 0)
    assert room.limit == 17 * GIB
    assert room.others == "evaluations and CUDA have 46 GiB of the card and the other run has 17 GiB"
    monkeypatch.setenv(SIDE_BY_SIDE, "3")
    assert preflight._own(alone, 0) == (74 * GIB // 3, "2 other runs have 49 GiB of the card")
    monkeypatch.delenv(SIDE_BY_SIDE)
    assert preflight._own(alone, 0) == (80 * GIB, "")
    room = room_of_card(80, 0)
    assert (room.limit, room.others) == (36 * GIB, "evaluations and CUDA have 44 GiB of the card")


MEASURED = {"seconds", "memory", "cache", "per_second"}
"""Parts of the names of metrics that differ from run to run."""


def rows(directory: Path) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in row.items() if not any(part in name for part in MEASURED)} for row in found]


@pytest.mark.timeout(300)
def test_runs_side_by_side_are_those_that_train_alone(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    judge = Card()
    judge.shares, judge.evaluate = False, ScriptedEvaluator().evaluate  # type: ignore[method-assign]

    @asynccontextmanager
    async def opening(*arguments: Any) -> AsyncIterator[Card]:
        yield judge

    monkeypatch.setattr(evaluators_module, "open_evaluator", opening)
    jobs = [(replace(run, seed=seed, device="cpu"), tmp_path / "together" / str(seed)) for seed in range(3)]
    assert command.main(jobs, together=2) == 0
    assert all(rundir.finished(directory, own) for own, directory in jobs)
    assert anyio.run(lambda: loop.train(jobs[2][0], tmp_path / "alone", evaluator=ScriptedEvaluator()))
    found, expected = rows(jobs[2][1]), rows(tmp_path / "alone")
    assert len(found) == len(expected) > 3
    for mine, theirs in zip(found, expected, strict=True):
        numbers = {name: value for name, value in theirs.items() if isinstance(value, float)}
        assert {name: mine[name] for name in numbers} == pytest.approx(numbers, rel=1e-6, abs=1e-6)
        assert {name: mine[name] for name in theirs.keys() - numbers} == {name: theirs[name] for name in theirs.keys() - numbers}
    weights = [directory / "checkpoints/checkpoint-3/model.safetensors" for directory in (jobs[2][1], tmp_path / "alone")]
    assert weights[0].read_bytes() == weights[1].read_bytes()
    assert command.main(jobs, together=2) == 0  # nothing is left to do


def test_a_small_model_trains_on_one_thread_whatever_the_machine_has(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = set[int]()
    loss, threads = KernelGRPOTrainer.compute_loss, torch.get_num_threads()

    def seeing(self: KernelGRPOTrainer, *arguments: Any, **options: Any) -> Any:
        seen.add(torch.get_num_threads())
        return loss(self, *arguments, **options)

    monkeypatch.setattr(KernelGRPOTrainer, "compute_loss", seeing)
    torch.set_num_threads(3)
    try:
        assert anyio.run(lambda: loop.train(run, tmp_path, evaluator=ScriptedEvaluator()))
    finally:
        torch.set_num_threads(threads)
    assert seen == {1}


@pytest.mark.timeout(300)
def test_a_run_that_cannot_begin_ends_the_command_in_one_line(run: Run, model_directory: str, tmp_path: Path) -> None:
    jobs = mute_jobs(model_directory, tmp_path, seeds=2, steps=400)
    with rundir.owned(tmp_path / "1"):
        rundir.begin(tmp_path / "1", replace(jobs[1][0], seed=7))
    with pytest.raises(BaseExceptionGroup) as raised:
        command.main(jobs, together=2)
    told, status = explained(raised.value) or ("", 0)
    assert told.startswith(f"{tmp_path / '1'} holds another run (seed is 7 there and 1 here): ") and status == 2


METHODS = """
from dataclasses import dataclass
from tests.training.mute import Mute

@dataclass(frozen=True)
class Fine(Mute):
    def prompt(self, problem):
        return "x"

@dataclass(frozen=True)
class Wrong(Mute):
    def prompt(self, problem):
        return {}["nothing"]
"""
BESIDE = """
import sys
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
import methods_beside
from rlkernel.errors import exit_status
from rlkernel.training.command import main
from tests.training.mute import mute_jobs

which, model, out = sys.argv[1:]
if which == "Hidden":
    spec = spec_from_file_location("hidden", methods_beside.__file__)
    methods_beside = sys.modules["hidden"] = module_from_spec(spec)
    spec.loader.exec_module(methods_beside)
own = (methods_beside.Wrong if which == "Wrong" else methods_beside.Fine)()
jobs = [(replace(run, environment=own), directory) for run, directory in mute_jobs(model, Path(out), seeds=2, steps=1)]
sys.exit(exit_status(lambda: main(jobs, together=2)))
"""


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("which", "status"), [("Fine", 0), ("Wrong", 1), ("Hidden", 2)])
def test_methods_beside_the_script_are_found_and_their_bugs_told_as_in_one_process(
    which: str, status: int, model_directory: str, tmp_path: Path
) -> None:
    (tmp_path / "methods_beside.py").write_text(METHODS)
    script = tmp_path / "script.py"
    script.write_text(BESIDE)
    arguments = [sys.executable, str(script), which, model_directory, str(tmp_path / "runs")]
    done = subprocess.run(arguments, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.getcwd()}, check=False)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr and "interrupted" not in done.stderr
    said = done.stderr[done.stderr.find("error: ") :] if status else ""
    if which == "Fine":
        assert all((tmp_path / f"runs/{seed}/checkpoints/checkpoint-1/complete").parent.is_dir() for seed in range(2))
    if which == "Wrong":
        at = tmp_path / "methods_beside.py"
        assert said.startswith(f"error: Wrong raised KeyError: 'nothing' ({at}:13)\n") and len(said.splitlines()) <= 4
    if which == "Hidden":
        assert said == (
            "error: a run cannot be read by another process (ModuleNotFoundError: No module named 'hidden'): put the module's "
            "folder on PYTHONPATH, or use --together 1\n"
        )


def test_a_process_that_ends_before_its_run_is_told_in_one_line(run: Run) -> None:
    killed, failed = host._error(run, None, -9), host._error(run, None, 1)
    assert isinstance(killed, UsageError) and str(killed) == (
        "the process that trained trloo seed 0 was killed by SIGKILL, by the kernel itself where memory is short: give the same "
        "command, which goes on; --together 1 takes less memory"
    )
    assert failed is not None
    assert explained(failed) == ("the process that trained trloo seed 0 ended with status 1: what it said is above", 1)
    assert host._error(run, Ended(True), None) is None
    assert explained(host._error(run, Ended(False, "mine", 1), None) or ValueError()) == ("mine", 1)


def starting(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `code` be what a trainer process does; `sys.argv[1]` is its end of the socket."""
    monkeypatch.setattr(host, "command_line", lambda end: [sys.executable, "-c", code, str(end.fileno())])


def test_the_last_words_of_a_process_are_all_repeated(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    starting("import sys; sys.stderr.write('word\\n' * 12000 + 'the last')", monkeypatch)

    async def main() -> None:
        async with host._open_trainer(1) as (process, _):
            await process.wait()

    anyio.run(main)
    assert capfd.readouterr().err == "word\n" * 12000 + "the last\n"


def test_an_assignment_that_nobody_reads_yet_does_not_hold_up_an_interruption(monkeypatch: pytest.MonkeyPatch) -> None:
    starting("import time; time.sleep(60)", monkeypatch)

    async def main() -> float:
        begun = time.monotonic()
        with anyio.move_on_after(0.5):
            async with host._open_trainer(1) as (_, channel):
                await _Trainer(channel, Card()).train("x" * 10_000_000)  # type: ignore[arg-type]
        return time.monotonic() - begun

    assert anyio.run(main) < 20


SCRIPT = """
import sys
from pathlib import Path
from rlkernel.errors import exit_status
from rlkernel.training.command import main
from tests.training.mute import mute_jobs

jobs = mute_jobs(sys.argv[1], Path(sys.argv[2]), seeds=2, steps=400)
sys.exit(exit_status(lambda: main(jobs, together=2)))
"""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_signal_ends_command_and_trainers_and_the_runs_go_on(number: int, model_directory: str, tmp_path: Path) -> None:
    async def main() -> None:
        arguments = [sys.executable, "-c", SCRIPT, model_directory, str(tmp_path / "runs")]
        process = await anyio.open_process(arguments, stdout=None, start_new_session=True)
        assert process.stderr is not None
        said, trainers = "", list[int]()
        async for data in process.stderr:
            said += data.decode()
            if all(f"mute seed {seed}  step 3/" in said for seed in range(2)) and not trainers:
                trainers = [os.pidfd_open(pid) for pid in children(process.pid) if b"side_by_side" in command_line(pid)]
                assert len(trainers) == 2
                os.kill(process.pid, number)
        assert await process.wait() == (130 if number == signal.SIGINT else -signal.SIGKILL)
        assert "Traceback" not in said or number == signal.SIGKILL
        with anyio.fail_after(60 if number == signal.SIGINT else 2):
            for trainer in trainers:  # readable once it has ended
                await anyio.wait_readable(trainer)
                os.close(trainer)

    anyio.run(main)
    for own, directory in mute_jobs(model_directory, tmp_path / "runs", seeds=2, steps=400):
        with rundir.owned(directory):  # nobody holds it any more
            start = rundir.begin(directory, own)
        assert re.fullmatch(r"checkpoint-\d+", Path(start.checkpoint or "").name) and start.step >= 2


def children(pid: int) -> list[int]:
    """The children of a process's first thread."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def command_line(pid: int) -> bytes:
    """The command line of a process."""
    return Path(f"/proc/{pid}/cmdline").read_bytes()
