"""From words to runs: arms, seeds, sizes and directories."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rlkernel.commands import plan as plan_module
from rlkernel.commands.asked import Flags
from rlkernel.commands.plan import plan, together_of
from tests.commands.scripted_training import ARMS, BASE, CPU, PRESETS


def test_all_arms_and_seeds_run_seed_by_seed_in_directories_of_their_own() -> None:
    jobs = plan(ARMS, Flags(out=Path("out")), CPU)
    assert [(run.name, run.seed) for run, _ in jobs] == [("grpo", 0), ("trloo", 0), ("grpo", 1), ("trloo", 1)]
    assert len({directory for _, directory in jobs}) == 4
    assert all(directory.parent == Path("out/arms") for _, directory in jobs)


def test_the_same_flags_give_the_same_directory_and_other_flags_another() -> None:
    def directory(**flags: Any) -> Path:
        return plan({"grpo": BASE}, Flags(seeds=(0,), **flags), CPU)[0][1]

    assert directory() == directory()
    assert directory(steps=5) == directory(steps=5)
    assert len({directory(), directory(steps=5), directory(steps=6)}) == 3


def test_flags_change_the_run_and_nothing_else_does() -> None:
    ((run, _),) = plan({"grpo": BASE}, Flags(seeds=(3,), steps=7, rollouts=2), CPU)
    assert run == replace(BASE, seed=3, steps=7, rollouts=2)


def test_a_preset_brings_its_own_sizes_which_flags_override() -> None:
    ((run, _),) = plan({"grpo": BASE}, Flags(model="some/model", learning_rate=2e-6), PRESETS["paper"])
    assert (run.model, run.max_new_tokens, run.learning_rate, run.seed) == ("some/model", 4096, 2e-6, 0)


@pytest.mark.parametrize(
    ("cores", "gib", "processes", "runs"),
    [(16, 128, "1", 3), (2, 128, "1", 2), (16, 17, "1", 2), (16, 6, "1", 1), (16, 4, "1", 1), (16, 128, "2", 1)],
)
def test_runs_side_by_side_are_the_presets_number_as_far_as_cores_and_memory_go(
    cores: int, gib: int, processes: str, runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    preset = replace(CPU, together=3)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(cores)))
    monkeypatch.setattr(plan_module, "memory_bytes", lambda: gib << 30)
    monkeypatch.setenv("WORLD_SIZE", processes)
    assert together_of(Flags(), preset) == runs
    assert together_of(Flags(together=5), preset) == 5  # whoever says so knows
