"""The configuration of a machine's cards: who else uses them, and how much of their memory evaluations take."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Collection

import pytest
import torch

from rlkernel.evaluator.cards import at_hand, gpus
from rlkernel.evaluator.cards.gpus import Gpu, GpuUnavailable
from rlkernel.evaluator.config import EvaluatorConfig, Limits
from tests.evaluator.cards.fake_nvml import FakeNvml, use
from tests.evaluator.cards.played import PlayedRunner

CARD = Gpu(0, "GPU-aa-11", "NVIDIA H200", 140 << 30, "580.1")


@pytest.mark.anyio
async def test_our_own_process_on_a_shared_card_is_no_complaint(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = use(FakeNvml(), monkeypatch)  # lists this process on the card
    nvml.utilisation, nvml.reasons = 0, 0
    monkeypatch.setattr(gpus, "wait_idle", lambda card, own: gpus.busy(gpus.read(card), own))
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    assert await at_hand.not_idle((CARD,), CARD.uuid) == []
    (line,) = await at_hand.not_idle((CARD,), None)
    assert line == f"cuda:0 (NVIDIA H200) is not idle, so times may be wrong: process {os.getpid()} holds memory"


def test_evaluations_leave_half_of_a_shared_card() -> None:
    config, less = EvaluatorConfig(), EvaluatorConfig(limits=Limits(gpu_memory_bytes=16 << 30))
    assert at_hand.runner_memory(CARD, config, shared=False) == int(0.94 * (140 << 30))
    assert at_hand.runner_memory(CARD, config, shared=True) == 70 << 30
    assert at_hand.runner_memory(CARD, less, shared=False) == at_hand.runner_memory(CARD, less, shared=True) == 16 << 30


@pytest.mark.anyio
async def test_cards_that_are_not_idle_are_told_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    def wait_idle(card: Gpu, own_pids: Collection[int]) -> str | None:
        assert not own_pids
        if card.index == 2:
            raise GpuUnavailable("cuda:2 does not answer")
        return None if card.index == 0 else "process 7 holds 30 MiB"

    monkeypatch.setattr(gpus, "wait_idle", wait_idle)
    assert await at_hand.not_idle([PlayedRunner(number).gpu for number in (2, 0, 1)], None) == [
        "cuda:2 (NVIDIA H200) is not idle, so times may be wrong: cuda:2 does not answer",
        "cuda:1 (NVIDIA H200) is not idle, so times may be wrong: process 7 holds 30 MiB",
    ]


def test_what_a_process_has_forked_is_its_own() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as child:
        assert child.pid in at_hand._children(os.getpid())
        child.communicate()
    assert child.pid not in at_hand._children(os.getpid())
    assert at_hand._children(2**22 + 1) == set()
