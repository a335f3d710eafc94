"""Every command of docs/reproduce.md is executed in its order, with a tiny model and tables of a few rows in the names' places.

The words of the commands are the page's; flags that make them small are appended, and win. A scripted judge stands in the
evaluator's place, which other tests ask for every one of these commands.
"""

from __future__ import annotations

import importlib
import json
import re
import shlex
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from experiments.benchmark import plan as benchmark_plan
from experiments.benchmark import work as benchmark_work
from experiments.tuning import examination
from rlkernel.commands import cli, experiment
from rlkernel.evaluator.config import EvaluatorConfig
from rlkernel.evaluator.judging.sizes.fitting import Fitted
from rlkernel.training import command
from rlkernel.types import Evaluation, Problem, Status
from tests.commands.test_commands import EVERY, ROOT
from tests.experiments.tuning import tiny
from tests.policy.scripted_endpoint import Scripted, serving
from tests.sources.published import drkernel, kernelbench, kernelbook

SHOWN = [one for one in EVERY if one.page == "reproduce.md" and one.block]
TUNING = "--steps 1 --batch 2 --turns 1 --max-new-tokens 8 --validation-every 9 --jobs 1"
TRAINING = (
    "--preset cpu --seeds 0 --steps 1 --prompts-per-step 1 --rollouts 2 --validation-rollouts 1 --turns 1 --max-new-tokens 8 "
    "--jobs 1"
)
BENCHMARK = "--samples 1 --max-new-tokens 8 --turns 2 --device cpu --jobs 1"
SMALL: Mapping[str, str] = {
    "experiments.prepare_problems": "--jobs 1",
    "experiments.benchmark": BENCHMARK,
    "experiments.cold_start": TUNING,
    "experiments.full_recipe": TRAINING,
    "experiments.hierarchical_reward": TRAINING,
    "experiments.prepare_conversations": "--turns 1.. --speedup 1.2",
}
"""Module -> what is appended to its commands."""


@dataclass
class Judge:
    """Whatever has a `ModelNew` is correct and twice as fast."""

    shares: bool = False
    notices: tuple[str, ...] = ()
    config: EvaluatorConfig = field(default_factory=EvaluatorConfig)

    async def evaluate(self, problem: Problem, code: str | None) -> Evaluation:
        if code is None or "class ModelNew" not in code:
            return Evaluation(Status.NO_CODE, "")
        return Evaluation(Status.CORRECT, "", speedup=2.0, coverage=1.0, timing="modelled")


@asynccontextmanager
async def judging(*_: Any, **__: Any) -> AsyncIterator[Judge]:
    yield Judge()


def rows(path: Path, made: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in made))
    return str(path)


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The page's names -> what stands in their places, longest names first."""
    monkeypatch.chdir(tmp_path)
    for directory in ("envs", "tests"):
        (tmp_path / directory).symlink_to(ROOT / directory)
    model = str(tiny.model(tmp_path, positions=8192).rename(tmp_path / "drkernel-14b"))
    bench = rows(tmp_path / "kernelbench.jsonl", [kernelbench(1)])
    held = drkernel(9, data_source="kernelbench_level2_validation", extra_info=drkernel(9)["extra_info"])
    found = {
        "ScalingIntelligence/KernelBench:level_1+level_2": bench,
        "ScalingIntelligence/KernelBench": rows(tmp_path / "other.jsonl", [other_sum()]),
        "hkust-nlp/drkernel-rl-data": rows(tmp_path / "rl.jsonl", [drkernel(k) for k in range(3)]),
        "hkust-nlp/drkernel-validation-data": rows(tmp_path / "held.jsonl", [held]),
        "hkust-nlp/drkernel-coldstart-8k": str(tiny.table(tmp_path, rows=4)),
        "GPUMODE/KernelBook": rows(tmp_path / "kernelbook.jsonl", [kernelbook(k) for k in range(4)]),
        **dict.fromkeys(("hkust-nlp/drkernel-14b", "Qwen/Qwen3-14B-Base", "Qwen/Qwen3-8B"), model),
        "checkpoint-300": "checkpoint-1",
    }
    return dict(sorted(found.items(), key=lambda pair: -len(pair[0])))


def other_sum() -> dict[str, Any]:
    """A row of a benchmark that no other row equals."""
    return kernelbench(1, code=kernelbench()["code"].replace("x.sum(self.dim) * 2.0", "torch.cumsum(x, self.dim)"))


def replaced(text: str, names: Mapping[str, str]) -> str:
    return re.sub("|".join(map(re.escape, names)), lambda found: names[found[0]], text)


def run(text: str) -> int:
    """As a shell would, in this process; a pattern without a match is an error."""
    words = []
    for word in shlex.split(text):
        matches = sorted(str(path) for path in Path().glob(word)) if "*" in word else [word]
        assert matches, word
        words += matches
    if words[0] == "rlkernel":
        return cli.main(words[1:])
    assert words[:2] == ["python", "-m"], text
    module = importlib.import_module(words[2])
    if hasattr(module, "__path__"):  # a room, whose command is a file
        module = importlib.import_module(f"{words[2]}.command")
    if hasattr(module, "EXPERIMENT"):
        return experiment.main(module.EXPERIMENT, words[3:])
    return int(module.main(words[3:]))


@pytest.mark.slow
def test_every_command_of_the_page_is_executed(
    names: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "open_evaluator", judging)
    monkeypatch.setattr(examination, "open_evaluator", judging)
    monkeypatch.setattr(benchmark_work, "open_any_pool", judging)
    monkeypatch.setattr(benchmark_plan, "_fit", lambda problems, *_: [Fitted(problem, {}, {}) for problem in problems])
    assert len(SHOWN) == 17
    with serving(Scripted(lambda body: tiny.GOOD)) as teacher:
        small = {**names, "http://localhost:8000/v1": teacher.url}
        for shown in SHOWN:
            module = shown.words[2] if shown.words[0] == "python" else ""
            if "drkernel-14b-*" in shown.text:
                answer_well(tmp_path)
            status = run(f"{replaced(shown.text, small)} {SMALL.get(module, '')}")
            assert status in ((0, 1) if "doctor" in shown.text else (0,)), (shown.text, status, capsys.readouterr())
    for path in ("data/rl.parquet", "data/kernelbook.parquet", "data/distilled.parquet", "data/kept.parquet"):
        assert (tmp_path / path).is_file(), path
    for path in ("runs/cold_14b", "runs/tritonrl_8b", "runs/rft_14b"):
        assert (tmp_path / path / "model.safetensors").is_file(), path
    assert len(list(tmp_path.glob("runs/arms/*/checkpoints/checkpoint-1"))) == 7  # five arms and two


def answer_well(place: Path) -> None:
    """Give a benchmark of the tiny model, which knows no kernel, an answer that is worth keeping."""
    path = next(place.glob("runs/benchmark/drkernel-14b-*/turns.jsonl"))
    row = json.loads(path.read_text().splitlines()[0])
    good = Evaluation(Status.CORRECT, "", speedup=2.0, coverage=1.0, timing="modelled").to_json()
    answer = {**row["answer"], "text": tiny.GOOD, "stop": "stop"}
    with path.open("a") as file:
        file.write(json.dumps({**row, "sample": 7, "turn": 0, "answer": answer, "evaluation": good}) + "\n")
