"""Which card the policy has, which ones evaluate, and what they leave each other."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from rlkernel.config import Run
from rlkernel.evaluator.cards.gpus import Gpu
from rlkernel.evaluator.config import EvaluatorConfig, Limits
from rlkernel.training import placement
from rlkernel.training.placement import RAY, Placement, place, select
from rlkernel.types import Precision

CARDS = tuple(Gpu(i, f"GPU-{i}", "NVIDIA H200", 140 << 30, "580.1") for i in range(4))


@pytest.mark.parametrize(
    ("device", "cards", "own", "expected", "line"),
    [
        ("auto", 0, None, Placement("cpu", None, False), "the policy is on the CPU, evaluations on the CPU (modelled time)"),
        ("auto", 1, "GPU-0", Placement("cuda:0", CARDS[0], True), "the policy and the evaluations take turns on cuda:0"),
        ("auto", 2, "GPU-0", Placement("cuda:1", CARDS[0], False), "the policy is on cuda:0, evaluations on cuda:1"),
        ("auto", 4, "GPU-0", Placement("cuda:1,2,3", CARDS[0], False), "the policy is on cuda:0, evaluations on cuda:1,2,3"),
        # torch's first card need not be the driver's
        ("auto", 2, "GPU-1", Placement("cuda:0", CARDS[1], False), "the policy is on cuda:1, evaluations on cuda:0"),
        ("cuda:1", 2, "GPU-0", Placement("cuda:1", CARDS[0], False), "the policy is on cuda:0, evaluations on cuda:1"),
        (
            "cuda",
            2,
            "GPU-0",
            Placement("cuda:0,1", CARDS[0], True),
            "the policy and the evaluations take turns on cuda:0; evaluations also use cuda:0,1",
        ),
        (
            "cpu",
            1,
            "GPU-0",
            Placement("cpu", CARDS[0], False),
            "the policy is on cuda:0, evaluations on the CPU (modelled time)",
        ),
        # a CPU build of torch on a machine with a GPU
        ("auto", 1, None, Placement("cuda:0", None, False), "the policy is on the CPU, evaluations on cuda:0"),
    ],
)
def test_place(device: str, cards: int, own: str | None, expected: Placement, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: own is not None)
    found = place(device, CARDS[:cards], own)
    assert found == expected
    assert str(found) == line
    assert found.shared_uuid == (own if expected.shared else None)


def test_a_card_that_the_driver_does_not_list_is_refused() -> None:
    with pytest.raises(ValueError, match="device 'auto': the driver does not list the card that torch uses, MIG-7"):
        place("auto", CARDS, "MIG-7")


@pytest.mark.parametrize(
    ("device", "cards", "expected"),
    [("auto", 4, "cuda:2,3"), ("auto", 3, "cuda:2"), ("cpu", 2, "cpu"), ("cuda:3", 4, "cuda:3")],
)
def test_cards_beside_two_that_train_evaluate(device: str, cards: int, expected: str) -> None:
    assert place(device, CARDS[:cards], "GPU-0", ["GPU-1"]) == Placement(expected, CARDS[0], False)


@pytest.mark.parametrize(("device", "cards"), [("auto", 2), ("cuda", 4), ("cuda:0", 4), ("cuda:1", 4), ("ray", 4)])
def test_a_card_that_trains_in_another_process_cannot_evaluate(device: str, cards: int) -> None:
    with pytest.raises(ValueError, match=f"device '{device}': 2 processes train, .*: start fewer processes than there are cards"):
        place(device, CARDS[:cards], "GPU-0", ["GPU-1"])


def test_more_processes_than_cards_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("WORLD_SIZE", "3"), ("LOCAL_WORLD_SIZE", "3"), ("RANK", "0")):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(ValueError, match="3 processes train, one per card, and 2 are visible: start at most 2"):
        place("auto", CARDS[:2], "GPU-0")


def test_with_a_cluster_the_nodes_evaluate() -> None:
    assert select(RAY) == ()
    assert str(place(RAY)) == "the policy is on the CPU, evaluations on the nodes of a Ray cluster"


def test_what_a_run_demands_of_its_evaluator(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    one = replace(run, device="cpu", jobs=3, seed=7, precision=Precision.STRICT, evaluation_gib=4, timing_width=0.05)
    demand = placement.evaluator_of(one)
    assert demand == placement.EvaluatorDemand("cpu", 3, Precision.STRICT, 7, 4, 0.05)
    config = demand.config()
    assert (config.precision, config.seed, config.timing_width) == (Precision.STRICT, 7, 0.05)
    assert config.limits.gpu_memory_bytes == 4 * 2**30
    monkeypatch.setattr(placement, "is_measured", lambda device: True)
    assert placement.evaluator_of(one).seed is None, "measured verdicts are drawn from fresh secrets"


def test_the_users_own_way_to_allocate_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", lambda share, device: None)
    monkeypatch.setattr(torch._C, "_accelerator_setAllocatorSettings", asked.append)
    monkeypatch.delenv("PYTORCH_ALLOC_CONF", raising=False)
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:512")
    Placement("cuda:1", CARDS[0], False).limit_memory(EvaluatorConfig())
    assert asked == []
    monkeypatch.delenv("PYTORCH_CUDA_ALLOC_CONF")
    Placement("cuda:1", CARDS[0], False).limit_memory(EvaluatorConfig())
    assert asked == ["expandable_segments:True"]


def test_both_sides_fit_on_a_shared_card(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[float, int]] = []
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", lambda share, device: asked.append((share, device)))
    # 140 GiB: 64 for evaluations, 4 for contexts. 80 GiB, and where nothing is said: half for evaluations.
    limited = EvaluatorConfig(limits=Limits(gpu_memory_bytes=64 << 30))
    for gib, config in ((140, limited), (80, limited), (140, EvaluatorConfig())):
        Placement("cuda:0", replace(CARDS[0], memory_bytes=gib << 30), True).limit_memory(config)
    assert asked == [(72 / 140, 0), (36 / 80, 0), (66 / 140, 0)]
    Placement("cuda:1", CARDS[0], False).limit_memory(EvaluatorConfig())
    assert asked[3:] == [(1.0, 0)]
