"""Where time is modelled, the same run in a fresh folder is the same one, bit for bit, with a cold and with a warm cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rlkernel.runs.directory import METRICS, OUTCOMES, TRANSCRIPTS
from tests import forked

RUN = """
import sys
from dataclasses import replace
from pathlib import Path
import anyio
from experiments.arms import TRLOO_ARM, cpu
from rlkernel.training.loop import train
from tests.patient import PATIENT
from rlkernel.training import placement

# A busy machine's timeouts are its own.
placement.EvaluatorConfig = lambda precision, timing_width, seed, limits: replace(PATIENT, precision=precision, seed=seed)
wanted = ("level2/chain_bias_relu", "level2/chain_scale_gelu", "level2/chain_bias_tanh")
run = cpu(TRLOO_ARM)
problems = tuple(replace(p, split="validation" if p.name == wanted[-1] else "train") for p in run.problems if p.name in wanted)
assert len(problems) == 3
run = replace(run, problems=problems, prompts_per_step=2, rollouts=2, turns=2, steps=1, validation_rollouts=1)
for directory, cache in zip(sys.argv[1::2], sys.argv[2::2]):
    anyio.run(lambda: train(run, Path(directory), cache_dir=Path(cache)))
"""
TIMED = {"seconds", "cached", "cache_hit_rate"}
ROUNDED = {"mismatch", "kl_k1", "kl_k3", "effective_trajectories", "effective_tokens"}
"""What compares the sampler's log-probabilities with the trainer's: the last digits are those of the requests that happened to be
sampled together, and a warm cache answers sooner."""


def without_times(value: Any) -> Any:
    """A row without what a clock, a cache or the operating system says."""
    if isinstance(value, dict):
        timed = {key for key in value if key in TIMED or key.startswith(("seconds_", "memory_")) or key.endswith("_per_second")}
        kept = {key: without_times(item) for key, item in value.items() if key not in timed}
        return {key: round(item, 5) if key in ROUNDED else item for key, item in kept.items()}
    return [without_times(item) for item in value] if isinstance(value, list) else value


def left(directory: Path) -> dict[str, Any]:
    """What a run left behind: its rows without times, and the bytes of its last weights and moments."""
    rows = {
        name: [without_times(json.loads(line)) for line in (directory / name).read_text().splitlines()]
        for name in (METRICS, TRANSCRIPTS, OUTCOMES)
    }
    checkpoint = directory / "checkpoints" / "checkpoint-1"
    return {**rows, **{name: (checkpoint / name).read_bytes() for name in ("model.safetensors", "optimizer.pt")}}


@pytest.mark.slow
def test_the_same_run_in_another_folder_with_a_cold_and_a_warm_cache_is_the_same(tmp_path: Path) -> None:
    def command(hash_seed: str, *names: str) -> None:
        environment = {**os.environ, "WANDB_MODE": "disabled", "PYTHONHASHSEED": hash_seed}
        words = [sys.executable, "-c", RUN, *(str(tmp_path / name) for name in names)]
        done = subprocess.run(words, env=environment, cwd=forked.ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    command("1", "first", "cache")
    command("2", "cold", "other cache", "warm", "cache")
    first, cold, warm = (left(tmp_path / name) for name in ("first", "cold", "warm"))
    verdicts = [turn["evaluation"] for row in first[TRANSCRIPTS] for turn in row["turns"]]
    assert any(facts["max_error"] is not None for facts in verdicts), "nothing was compared, so nothing was drawn"
    for name, value in first.items():
        assert value == cold[name], f"{name} differs with a cold cache"
        assert value == warm[name], f"{name} differs with a warm cache"
    hits = [json.loads(line)["cache_hit_rate"] for line in (tmp_path / "warm" / METRICS).read_text().splitlines()]
    assert hits == [1.0] * 3
