"""What test-time scaling measures and leaves on disk: units, each an arm and a seed, several side by side.

units of one model --together at a time--> turns of all trajectories --one policy, one evaluator--> a directory for each
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import anyio

from rlkernel.config import Run, to_json
from rlkernel.interfaces import Evaluator
from rlkernel.metrics import rollout_metrics, timing
from rlkernel.refine import Context, refine_groups, until
from rlkernel.rollout import derive_seed
from rlkernel.runs import directory as rundir
from rlkernel.runs.outcomes import write_outcomes
from rlkernel.types import Group

SLOTS = {"cuda": 512, "cpu": 128}
"""Completions that are sampled at a time. Units side by side ask for many; on a card that evaluations share, a chunk of a full
batch takes hardly more of the queue than one of a few."""


@dataclass(frozen=True)
class Unit:
    """One arm and seed: what is measured or taken from disk as a whole."""

    context: Context
    """Which earlier turns are shown."""
    run: Run
    """The model, problems, environment, reward, lengths and seed, under the arm's name. Nothing of it trains."""
    directory: Path


def finished(unit: Unit) -> bool:
    """Whether the numbers of a unit are complete on disk."""
    manifest = rundir.read_manifest(unit.directory)
    return manifest is not None and "finished" in manifest


async def measure(unit: Unit, policy: Any, pool: Evaluator) -> tuple[Group, ...]:
    """Sample all problems and trajectories of a unit. Seeds are those of a run's validation."""
    run = unit.run
    return await refine_groups(
        run.problems,
        run.validation_rollouts,
        policy,
        pool,
        run.environment,
        run.reward,
        unit.context,
        run.turns,
        seed=derive_seed(run.seed, "validation"),
    )


def write(unit: Unit, groups: Sequence[Group], evaluator: Evaluator, started: Mapping[str, Any]) -> None:
    """Write a unit as a training run is written, with turns for steps, so that tables, figures and claims can read it.

    started: the manifest as it was when the unit began.
    """
    from rlkernel.runs.log import transcript
    from rlkernel.training.placement import describe

    unit.directory.mkdir(parents=True, exist_ok=True)
    facts = {
        "evaluator": describe(evaluator),
        "context": to_json(unit.context),
        "timing": timing(groups),
        "starts": [{"at": started["started"]}],
    }
    rundir.write_manifest(unit.directory, {**started, **facts})
    rows = []
    (unit.directory / "outcomes.jsonl").unlink(missing_ok=True)
    for turn in range(1, unit.run.turns + 1):
        sofar = until(groups, turn)
        rows.append({"split": "validation", "step": turn, **rollout_metrics(sofar)})
        write_outcomes(unit.directory, "validation", turn, sofar)
    (unit.directory / rundir.METRICS).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    best = [max(group.trajectories, key=lambda t: t.best.reward) for group in groups]
    texts = [transcript(t, unit.run.environment.prompt(t.problem)) for t in best]
    lines = [json.dumps({"split": "validation", "step": unit.run.turns, **text}) + "\n" for text in texts]
    (unit.directory / rundir.TRANSCRIPTS).write_text("".join(lines), encoding="utf-8")
    rundir.finish(unit.directory)


async def measure_all(units: Sequence[Unit], together: int, cache: Path, deadline: float | None) -> bool:
    """Measure what is missing, `together` units at a time. Returns whether all are finished: False when the deadline, by
    `time.monotonic`, came first."""
    # Seconds' worth of libraries, which `--list` need not wait for.
    import torch

    from rlkernel.policy.hf import open_policy
    from rlkernel.policy.load import load_model
    from rlkernel.training.placement import evaluator_of, open_evaluator

    waiting = [unit for unit in units if not finished(unit)]
    if not waiting:
        return True
    first = waiting[0].run
    device = "cuda" if torch.cuda.is_available() else "cpu"
    # One seed for all units, so that a verdict is the same whichever of them are finished already.
    async with open_evaluator(replace(evaluator_of(first), seed=0), cache) as pool:
        for name, units_of in groupby(waiting, key=lambda unit: unit.run.model):
            model, tokenizer = load_model(name)
            async with open_policy(
                model.to(device),
                tokenizer,
                max_new_tokens=first.max_new_tokens,
                temperature=first.temperature,
                engine=first.engine,
                slots=SLOTS[device],
                lease=pool.lease if pool.shares else nullcontext,
            ) as policy:
                await _measure_together(list(units_of), together, policy, pool, deadline)
    return all(finished(unit) for unit in waiting)


async def _measure_together(units: Sequence[Unit], together: int, policy: Any, pool: Evaluator, deadline: float | None) -> None:
    """Measure units of one model, in order and so many at a time; none begins after the deadline."""
    places = anyio.CapacityLimiter(together)

    async def one(unit: Unit) -> None:
        async with places:
            if deadline is not None and time.monotonic() >= deadline:
                return
            print(f"{unit.run.name} seed {unit.run.seed}: {unit.run.turns} turns", file=sys.stderr, flush=True)
            manifest = rundir.new_manifest(unit.run)
            write(unit, await measure(unit, policy, pool), pool, manifest)

    async with anyio.create_task_group() as tasks:
        for unit in units:
            tasks.start_soon(one, unit)
