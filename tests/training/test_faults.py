"""What breaks around a command: each fault is told in one line, and afterwards the same command has lost nothing.

A fault strikes a run of three steps of a tiny model. The run that goes on must have the rows and the weights of one that nothing
befell.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from algorithms.contexts import FullHistory
from rlkernel.benchmark.trajectories import Ledger, Task, make_trajectories
from rlkernel.config import Run
from rlkernel.environment.speed_reward import SpeedReward
from rlkernel.errors import exit_status
from rlkernel.evaluator.cache import ResultCache, key
from rlkernel.evaluator.processes.fork_server import ZygoteDied
from rlkernel.policy.endpoint import EndpointConfig, open_endpoint
from rlkernel.runs import directory as rundir
from rlkernel.runs import log, wandb_mode
from rlkernel.training import command
from rlkernel.types import Evaluation, Problem
from tests.echo import EchoEnvironment, ScriptedEvaluator
from tests.policy.scripted_endpoint import KEY, Scripted, serving
from tests.training.test_loop import rows, without_times


@dataclass
class Cached:
    """The scripted evaluator behind a cache of verdicts on the disk; killed at its call number `dies`."""

    directory: Path
    dies: int = 0
    asked: int = 0
    judged: int = 0

    def __post_init__(self) -> None:
        self.cache, self.inner = ResultCache(self.directory), ScriptedEvaluator()

    async def evaluate(self, problem: Problem, code: str | None) -> Evaluation:
        self.asked += 1
        if self.asked == self.dies:
            raise ZygoteDied("the fork server ended")  # tests/evaluator/test_pool.py kills a real one
        name = key(problem, code or "", "cpu", "")
        if (known := self.cache.get(name)) is not None:
            return known
        self.judged += 1
        self.cache.put(name, await self.inner.evaluate(problem, code))
        return await self.inner.evaluate(problem, code)


@dataclass
class Given:
    """A command that is given again and again, in a folder of its own."""

    run: Run
    folder: Path
    monkeypatch: pytest.MonkeyPatch

    @property
    def directory(self) -> Path:
        return self.folder / "run"

    def __call__(self, evaluator: Cached | None = None) -> int:
        @asynccontextmanager
        async def opened(*args: Any) -> AsyncIterator[Cached]:
            yield evaluator or Cached(self.folder / "evaluations")

        self.monkeypatch.setattr(command, "open_evaluator", opened)
        return exit_status(lambda: command.main([(self.run, self.directory)], cache_dir=None))

    def unfinished(self) -> None:
        """As if the last thing that the run did had been its checkpoint."""
        manifest = rundir.read_manifest(self.directory) or {}
        rundir.write_manifest(self.directory, {k: v for k, v in manifest.items() if k != "finished"})

    def left(self) -> tuple[list[dict[str, Any]], bytes]:
        """What the run has: its rows without times and hits of the cache, and its weights."""
        found = [{k: v for k, v in row.items() if k != "cache_hit_rate"} for row in without_times(rows(self.directory))]
        return found, (self.directory / "checkpoints" / "checkpoint-3" / "model.safetensors").read_bytes()


Fault = Callable[[Given, pytest.MonkeyPatch], int]


def damaged_checkpoint(given: Given, monkeypatch: pytest.MonkeyPatch) -> int:
    assert given() == 0
    given.unfinished()
    state = given.directory / "checkpoints" / "checkpoint-3" / "optimizer.pt"
    state.write_bytes(state.read_bytes()[:100])
    return given()


def no_network(given: Given, monkeypatch: pytest.MonkeyPatch) -> int:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    monkeypatch.setenv("WANDB_API_KEY", "k" * 40)
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.setattr(wandb_mode, "unreachable", lambda: f"http://127.0.0.1:{port}: [Errno 111] Connection refused")
    return given()


def full_disk(given: Given, monkeypatch: pytest.MonkeyPatch) -> int:
    append, written = log._append, []

    def fills_up(path: Path, found: Any) -> None:
        written.append(path)
        if len(written) == 5:  # of a row, as much as there was room for
            with path.open("a") as file:
                file.write('{"split": "tr')
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        append(path, found)

    with monkeypatch.context() as full:
        full.setattr(log, "_append", fills_up)
        return given()


def killed_pool(given: Given, monkeypatch: pytest.MonkeyPatch) -> int:
    return given(Cached(given.folder / "evaluations", dies=17))


def damaged_cache(given: Given, monkeypatch: pytest.MonkeyPatch) -> int:
    assert given(Cached(given.folder / "evaluations", dies=17)) == 2
    path = given.folder / "evaluations" / "results.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([b"\x00\xff not JSON\n", lines[0][: len(lines[0]) // 2] + b"\n", *lines[1:], b'{"key": "torn']))
    evaluator = Cached(given.folder / "evaluations")
    assert len(evaluator.cache) == len(lines) - 1  # the line that was cut is judged again
    return given(evaluator)


FAULTS: dict[str, tuple[Fault, int, str]] = {
    "damaged checkpoint": (damaged_checkpoint, 0, "checkpoint-3 is damaged (optimizer.pt has 100 bytes of"),
    "no network": (no_network, 0, "Weights & Biases cannot be reached (http://127.0.0.1:"),
    "full disk": (full_disk, 2, "error: the disk is full while "),
    "killed pool": (killed_pool, 2, "error: the evaluator is gone (the fork server ended): give the same command, which goes on"),
    "damaged cache": (damaged_cache, 0, "error: the evaluator is gone"),  # of the kill before it
}
"""Name -> what happens, the exit status of the command that it strikes, and what its one line says."""


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_one_line_and_the_same_command_loses_nothing(
    name: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    whole = Given(run, tmp_path / "whole", monkeypatch)
    assert whole() == 0
    expected = whole.left()
    fault, status, said = FAULTS[name]
    struck = Given(run, tmp_path / "struck", monkeypatch)
    capfd.readouterr()
    assert fault(struck, monkeypatch) == status
    err = capfd.readouterr().err
    assert "Traceback" not in err and len([line for line in err.splitlines() if said in line]) == 1, err
    if status:
        assert err.splitlines()[-1].startswith("error: ")
        assert struck() == 0
    assert struck.left() == expected


def test_an_endpoint_that_refuses_is_one_line_and_its_answers_are_kept(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    problems = [Problem("level1/a", 1, "validation", "")]

    def give(script: Scripted) -> int:
        async def work() -> None:
            config = EndpointConfig(url=script.url, model="m", in_flight=1)
            async with open_endpoint(config, KEY) as writer:
                task = Task(writer, ScriptedEvaluator(), EchoEnvironment(), SpeedReward(), FullHistory(), 3, 0)
                await make_trajectories(problems, 1, task, Ledger(tmp_path))

        return exit_status(lambda: anyio.run(work))

    with serving(Scripted(lambda body: f"turn {len(body['messages'])}", ["", "", "401"])) as script:
        assert give(script) == 2
    err = capfd.readouterr().err
    assert err.startswith(f"error: {script.url}: the key is not accepted") and err.count("\n") == 1
    kept = [row.answer for row in Ledger(tmp_path).rows]
    assert len(kept) == 2
    with serving(Scripted(lambda body: "later")) as script:
        assert give(script) == 0
        assert len(script.bodies) == 1  # what was answered is not asked again
    after = [row.answer for row in Ledger(tmp_path).rows]
    assert len(after) == 3 and after[:2] == kept
