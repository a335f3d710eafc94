"""TRL's own trainer with the evaluator as its reward function, for real at tiny size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from examples.trl_grpo import main, train
from rlkernel.errors import exit_status
from rlkernel.types import Evaluation, Problem
from tests.red_team import cases

HONEST = (Path(__file__).parents[1] / "red_team" / "hostile" / "honest.py").read_text().replace("256", "1024")


class Answered:
    """A random model writes no kernels: each second of its completions is taken for one."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def prompt(self, problem: Problem) -> str:
        return f"Rewrite {problem.name}."

    def extract(self, completion: str) -> str | None:
        self.seen.append(completion)
        return None if len(self.seen) % 2 else HONEST

    def feedback(self, evaluation: Evaluation) -> str:
        raise AssertionError("there is one turn")


def test_stock_trl_trains_on_the_evaluators_rewards(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    environment = Answered()
    before = [parameter.detach().clone() for parameter in tiny_model.parameters()]
    trainer = train(
        tiny_model,
        tiny_tokenizer,
        [cases.relu()],
        environment,
        tmp_path,
        max_steps=1,
        num_generations=4,
        per_device_train_batch_size=4,
        max_completion_length=8,
        learning_rate=1e-2,
        save_strategy="no",
        gradient_checkpointing=False,
        disable_tqdm=True,
    )
    assert len(environment.seen) == 4 and all(isinstance(text, str) for text in environment.seen)
    (row,) = [row for row in trainer.state.log_history if "reward" in row]
    # A correct relu at speedup 1 is worth 0.5 + 0.5, no code 0; two each.
    assert row["rewards/SpeedReward/mean"] == pytest.approx(0.5, abs=1e-6)
    assert row["frac_reward_zero_std"] == 0.0
    assert any(not bool((a == b).all()) for a, b in zip(before, tiny_model.parameters(), strict=True))


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("--generations 1", "--generations is 1: give at least 2"),
        ("--steps 0", "--steps is 0: give at least 1"),
        ("--tokens -5", "--tokens is -5: give at least 1"),
        (
            "--model ./nosuch",
            "--model './nosuch': no such directory; give `small`, the directory of a causal language model, or its name on the "
            "Hugging Face hub",
        ),
    ],
)
def test_what_is_unusable_is_one_line(
    words: str, line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["trl_grpo", *words.split()])
    assert exit_status(main) == 2
    assert capsys.readouterr().err == f"error: {line}\n"
