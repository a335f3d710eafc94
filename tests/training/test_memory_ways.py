"""A run that does not fit is told what makes it fit on the cards that are there."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from transformers import Qwen3Config

from benchmarks.shapes import SHAPES
from rlkernel.config import Run
from rlkernel.errors import UsageError
from rlkernel.evaluator.cards.gpus import Gpu
from rlkernel.training import preflight
from rlkernel.training.memory import GIB
from rlkernel.training.placement import Placement

CARD = Gpu(0, "GPU-0", "", 80 * GIB, "")


@pytest.mark.parametrize(
    ("cards", "shared", "helps"),
    [
        (1, True, "it fits with --weights bfloat16 and --evaluation-gib 18, or with Run.lora_rank=32 and --evaluation-gib 33"),
        (
            8,
            False,
            "it fits with --weights bfloat16, or with Run.lora_rank=32, or with the weights in 5 pieces (docs/larger.md)",
        ),
    ],
)
def test_a_run_is_told_what_its_cards_allow(
    cards: int, shared: bool, helps: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "place", lambda device: Placement("cuda:0", CARD, shared))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: cards)
    monkeypatch.setattr(preflight, "load_config", lambda name: Qwen3Config(**SHAPES["8b"]))
    large = replace(run, model="8b", turns=3, max_new_tokens=512, device="cuda")
    with pytest.raises(UsageError) as refused:
        preflight.check_memory(large)
    line = str(refused.value)
    assert line.startswith(f"8b does not fit: it needs 167.82 GiB, and may take {'36' if shared else '80'}.00 GiB of a card, so ")
    assert line.endswith(f"; {helps}")
    preflight.check_memory(replace(large, weights="bfloat16", evaluation_gib=18))
