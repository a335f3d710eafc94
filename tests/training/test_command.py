"""Runs one after another from one command: limits, signals, neighbours that share an evaluator."""

from __future__ import annotations

import gc
import os
import re
import signal
import time
import weakref
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TextIO

import anyio
import pytest

from algorithms.held_out import HeldOut
from rlkernel.config import Run
from rlkernel.errors import GOES_ON, UsageError, exit_status
from rlkernel.policy.load import load_model
from rlkernel.runs import directory as rundir
from rlkernel.training import command, loop, placement
from rlkernel.training import jobs as jobs_module
from rlkernel.training.placement import EvaluatorDemand
from tests import forked
from tests.echo import ScriptedEvaluator


@dataclass
class Trainings:
    """Takes the place of `train`: notes what is trained with which evaluator, and finishes it unless told otherwise."""

    finishes: bool = True
    opened: list[tuple[str, int, int | None]] = field(default_factory=list)
    trained: list[tuple[str, int]] = field(default_factory=list)

    @asynccontextmanager
    async def open_evaluator(self, demand: EvaluatorDemand, cache_dir: Path | None) -> AsyncIterator[ScriptedEvaluator]:
        self.opened.append((demand.device, demand.jobs, demand.seed))
        yield ScriptedEvaluator()

    async def train(self, run: Run, directory: Path, **options: Any) -> bool:
        self.trained.append((run.device, run.seed))
        if self.finishes:
            with rundir.owned(directory):
                rundir.begin(directory, run)
                rundir.finish(directory)
        return self.finishes


@pytest.fixture
def trainings(monkeypatch: pytest.MonkeyPatch) -> Trainings:
    found = Trainings()
    monkeypatch.setattr(command, "open_evaluator", found.open_evaluator)
    monkeypatch.setattr(loop, "train", found.train)
    for check in ("check_memory", "check_device"):  # of cards that are not here
        monkeypatch.setattr(jobs_module, check, lambda asked: None)
    return found


def jobs_of(run: Run, directory: Path, *devices: str) -> list[tuple[Run, Path]]:
    return [(replace(run, device=device, seed=i), directory / str(i)) for i, device in enumerate(devices)]


def test_a_device_is_looked_for_before_a_model(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlkernel.evaluator.cards.gpus.find", lambda: ())
    monkeypatch.setattr(jobs_module, "check_model", lambda *given, **changes: pytest.fail("a model was looked at"))
    with pytest.raises(UsageError, match=r"^Run\.device: device 'cuda': no NVIDIA GPU was found"):
        jobs_module.check([replace(run, device="cpu"), replace(run, device="cuda")])


def test_a_run_whose_sampler_cannot_draw_is_told_before_any_trains(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs_module, "check_model", lambda *given, **changes: pytest.fail("a model was looked at"))
    broken = replace(run, name="holding", sampler=HeldOut(("/nothing_",)))
    with pytest.raises(UsageError, match=r"^run 'holding': HeldOut\.parts is \('/nothing_',\): no problem's name contains"):
        jobs_module.check([run, broken])


def test_neighbours_share_an_evaluator_and_finished_runs_are_skipped(
    run: Run, tmp_path: Path, trainings: Trainings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placement, "is_measured", lambda device: device == "cuda")
    devices = [("cpu", 0, "a"), ("cpu", 0, "b"), ("cpu", 1, "a"), ("cuda", 1, "a"), ("cuda", 2, "a")]
    jobs = [(replace(run, device=device, seed=seed), tmp_path / f"{device}{seed}{name}") for device, seed, name in devices]
    assert command.main(jobs) == 0
    assert trainings.trained == [("cpu", 0), ("cpu", 0), ("cpu", 1), ("cuda", 1), ("cuda", 2)]
    # Modelled verdicts are drawn from the run's seed, measured ones from fresh secrets.
    assert trainings.opened == [("cpu", 0, 0), ("cpu", 0, 1), ("cuda", 0, None)]
    assert command.main(jobs) == 0
    assert len(trainings.trained) == 5 and len(trainings.opened) == 3


@pytest.mark.parametrize(
    ("mode", "model", "told"),
    [
        ("disabled", "nothing", r"--model '.*/nothing': no such directory; give `small`, "),
        ("ofline", "model", "WANDB_MODE is 'ofline': choose online, offline or disabled, or unset it"),
    ],
)
def test_what_would_end_a_run_at_its_start_ends_the_command_before_anything_is_started(
    mode: str,
    model: str,
    told: str,
    run: Run,
    tmp_path: Path,
    trainings: Trainings,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("WANDB_MODE", mode)
    first, second = jobs_of(run, tmp_path, "cpu", "cpu")
    capfd.readouterr()
    assert exit_status(lambda: command.main([first, (replace(second[0], model=str(tmp_path / model)), second[1])])) == 2
    assert re.fullmatch(f"error: {told}.*\n", capfd.readouterr().err)
    assert trainings.opened == trainings.trained == []


def test_a_limit_ends_the_command_after_the_run_that_was_finished_or_stopped(
    run: Run, tmp_path: Path, trainings: Trainings
) -> None:
    jobs = jobs_of(run, tmp_path, "cpu", "cpu")
    # The time is over, and yet every command does something, so that repeating it comes to an end.
    assert command.main(jobs, until=time.monotonic()) == GOES_ON
    assert trainings.trained == [("cpu", 0)]
    assert command.main(jobs, until=time.monotonic()) == 0  # nothing is left
    assert trainings.trained == [("cpu", 0), ("cpu", 1)]
    trainings.finishes = False
    assert command.main(jobs_of(run, tmp_path / "more", "cpu", "cpu"), until=time.monotonic() + 1000) == GOES_ON
    assert trainings.trained[2:] == [("cpu", 0)]


def test_a_finished_run_leaves_its_memory_to_the_next(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models: list[weakref.ref[Any]] = []
    alive: list[bool] = []

    def loading(*args: Any, **kwargs: Any) -> Any:
        alive.extend(model() is not None for model in models)
        model, tokenizer = load_model(*args, **kwargs)
        models.append(weakref.ref(model))
        return model, tokenizer

    monkeypatch.setattr(loop, "load_model", loading)
    monkeypatch.setattr(command, "open_evaluator", Trainings().open_evaluator)
    short = replace(run, steps=1)
    gc.disable()  # it would come at some time or other
    try:
        anyio.run(command.train_all, [(replace(short, seed=seed), tmp_path / str(seed)) for seed in range(2)])
    finally:
        gc.enable()
    assert alive == [False]


SCRIPT = """
import sys
from dataclasses import dataclass
from pathlib import Path
from rlkernel.environment.speed_reward import SpeedReward
from algorithms.trloo import TRLOO
from algorithms.uniform_credit import UniformCredit
from rlkernel.training.command import main
from rlkernel.config import Run
from rlkernel.errors import exit_status
from rlkernel.types import Problem

@dataclass(frozen=True)
class Mute:
    def prompt(self, problem): return problem.name
    def extract(self, completion): return None
    def feedback(self, evaluation): return evaluation.detail

problems = tuple(Problem(f"p{i}", 1, split, "") for i, split in enumerate(("train", "train", "validation")))
run = Run("mute", problems, Mute(), SpeedReward(), TRLOO(), UniformCredit(), model=sys.argv[1], turns=1, prompts_per_step=1,
          rollouts=2, max_new_tokens=4, steps=int(sys.argv[3]), staleness=int(sys.argv[4]), validation_every=1000,
          validation_rollouts=1, jobs=1)
sys.exit(exit_status(lambda: main([(run, Path(sys.argv[2]))])))
"""


@contextmanager
def started(model: str, directory: Path, staleness: int) -> Iterator[tuple[BaseProcess, TextIO]]:
    """400 steps in a process of their own, and what it says; killed in the end if it has not ended."""
    arguments = ["-c", SCRIPT, model, directory, "400", str(staleness)]
    reads, writes = os.pipe()
    with open(os.devnull, "w") as nowhere, open(reads, encoding="utf-8") as said:
        process = forked.start(arguments, nowhere.fileno(), writes)
        os.close(writes)
        yield process, said
        process.kill()
        process.join()


@pytest.mark.parametrize(("number", "staleness"), [(signal.SIGINT, 0), (signal.SIGINT, 1), (signal.SIGKILL, 0)])
def test_a_signal_ends_the_process_and_the_command_goes_on(
    number: int, staleness: int, model_directory: str, tmp_path: Path
) -> None:
    directory = tmp_path / "run"
    with started(model_directory, directory, staleness) as (process, stderr):
        said = ""
        while "step 3/" not in said and (line := stderr.readline()):
            said += line
        assert "step 3/" in said, said
        assert process.pid is not None
        os.kill(process.pid, number)
        rest = stderr.read()
        process.join()
    assert process.exitcode == (130 if number == signal.SIGINT else -signal.SIGKILL)
    assert "Traceback" not in rest
    if number == signal.SIGINT:
        assert rest.endswith("the same command goes on from the last checkpoint, or from the start if there is none\n")
    # The same command again: it goes on after the last complete checkpoint, not from the start.
    with started(model_directory, directory, staleness) as (_, stderr):
        first = next(line for line in stderr if "mute seed 0: " in line)
    # Step 3's line is printed before its checkpoint is written, so the next step is the third at the earliest.
    assert int(first.removeprefix("mute seed 0: resuming after step ").split(" of ")[0]) + 1 >= 3
