"""An examination leaves no trace in the training beside it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest
import torch

from experiments.tuning import examination
from experiments.tuning.examination import Examination, examine
from rlkernel.environment.kernel_env import KernelEnvironment
from tests.commands.test_reproduce import judging
from tests.experiments.tuning import tiny


def test_neither_random_numbers_nor_the_mode_change_and_equal_weights_answer_equally(
    tiny_model: Any, tiny_tokenizer: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(examination, "open_evaluator", judging)
    asked = Examination((tiny.PROBLEM,), KernelEnvironment("short"), turns=1, rollouts=2, max_new_tokens=4, seed=3)
    tiny_model.config.max_position_embeddings = 4096
    tiny_model.train()

    def drawn() -> tuple[float, float, float]:
        return random.random(), float(np.random.rand()), float(torch.rand(()))

    def seeded() -> None:
        random.seed(0)
        np.random.seed(0)
        torch.manual_seed(0)

    seeded()
    expected = drawn()
    seeded()
    first = anyio.run(examine, tiny_model, tiny_tokenizer, asked, tmp_path)
    assert drawn() == expected and tiny_model.training
    again = anyio.run(examine, tiny_model, tiny_tokenizer, asked, tmp_path)

    def texts(groups: Any) -> list[str]:
        return [turn.completion.text for group in groups for one in group.trajectories for turn in one.turns]

    assert texts(first) == texts(again) and len(texts(first)) == 2
