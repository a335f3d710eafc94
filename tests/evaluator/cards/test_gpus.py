"""GPUs by NVML: which are chosen, what a reading says, when a card is not idle."""

from __future__ import annotations

import os
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from rlkernel.evaluator.cards import gpus
from rlkernel.evaluator.cards.gpus import Gpu, GpuUnavailable, Reading, busy, foreign, select, visible
from rlkernel.evaluator.devices import A100, H200
from tests.evaluator.cards.fake_nvml import FakeNvml, use

GIB = 1 << 30
CARDS = tuple(Gpu(index, f"GPU-{uuid}-11", "NVIDIA H200", 140 * GIB, "580.1") for index, uuid in enumerate(("aa", "ab", "cc")))
IDLE = Reading(
    time=0.0, sm_mhz=345, memory_mhz=3201, temperature_c=30, power_w=75.0, throttle=(), used_bytes=0, free_bytes=139 * GIB,
    processes=(), utilisation=0,
)  # fmt: skip


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        (None, ["aa", "ab", "cc"]),
        ("", []),
        ("-1", []),
        ("2,0", ["cc", "aa"]),
        (" 1 , 2", ["ab", "cc"]),
        ("0,7,1", ["aa"]),  # CUDA stops at the first entry that names no card
        ("1,1", []),  # and shows nothing when one is named twice
        ("GPU-cc-11,GPU-aa", ["cc", "aa"]),
        ("GPU-a", []),  # the beginning of two cards
        ("NoDevFiles", []),
    ],
)
def test_visible_follows_cuda_visible_devices(setting: str | None, expected: list[str]) -> None:
    shown = visible(CARDS, setting)
    assert [card.uuid for card in shown] == [f"GPU-{uuid}-11" for uuid in expected]
    assert [card.index for card in shown] == list(range(len(expected)))


def test_select() -> None:
    assert select("auto", CARDS) == select("cuda", CARDS) == CARDS
    assert select("cuda:1", CARDS) == (CARDS[1],)
    assert select("cuda:2,0", CARDS) == (CARDS[0], CARDS[2])
    assert select("cpu", CARDS) == select("auto", ()) == ()


@pytest.mark.parametrize(
    ("device", "found", "setting", "line"),
    [
        ("cuda:3", CARDS[:2], None, "device 'cuda:3' is not there: use one of cuda:0 (NVIDIA H200), cuda:1 (NVIDIA H200)"),
        ("cuda:1", CARDS[:1], "2", "device 'cuda:1' is not there (CUDA_VISIBLE_DEVICES='2'): use one of cuda:0 (NVIDIA H200)"),
        ("cuda:1,2", CARDS[:2], None, "device 'cuda:1,2' is not there: use one of cuda:0 (NVIDIA H200), cuda:1 (NVIDIA H200)"),
        ("cuda", (), None, "device 'cuda': no NVIDIA GPU was found; use auto or cpu (modelled time)"),
        ("cuda:0", (), "", "device 'cuda:0': no NVIDIA GPU was found (CUDA_VISIBLE_DEVICES=''); use auto or cpu (modelled time)"),
        ("gpu", CARDS, None, "device 'gpu' is unknown: use auto, cpu, cuda, cuda:N or ray"),
        ("cuda:x", CARDS, None, "device 'cuda:x' is unknown: use auto, cpu, cuda, cuda:N or ray"),
    ],
)
def test_select_refuses_in_one_line(
    device: str, found: tuple[Gpu, ...], setting: str | None, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if setting is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", setting)
    with pytest.raises(ValueError) as error:
        select(device, found)
    assert str(error.value) == line


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("NVIDIA H200", H200),
        ("NVIDIA H200 NVL", None),
        ("NVIDIA A100-SXM4-80GB", A100),
        ("NVIDIA GH200 480GB", None),
        ("NVIDIA L4", None),
    ],
)
def test_profile_by_name(name: str, known: Any) -> None:
    assert gpus.profile(replace(CARDS[0], name=name)) is known


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({}, None),
        ({"processes": ((7, 512 << 20),)}, None),  # ours
        ({"processes": ((7, 512 << 20), (4242, 8192 << 20))}, "process 4242 holds 8192 MiB"),
        ({"processes": ((7, 1), (4242, None))}, "process 4242 holds memory"),
        ({"utilisation": 5}, None),
        ({"utilisation": 6}, "kernels ran 6 % of the last second"),
        ({"free_bytes": 4 * GIB}, None),
        ({"free_bytes": 3 * GIB}, "only 3072 MiB are free, 4096 MiB are needed"),
        ({"throttle": ("power cap", "sync boost")}, "the clock is slowed by power cap, sync boost"),
        ({"utilisation": 99, "free_bytes": 0}, "kernels ran 99 % of the last second; only 0 MiB are free, 4096 MiB are needed"),
        ({"processes": None, "utilisation": None, "free_bytes": None, "throttle": None}, None),
    ],
)
def test_busy_names_what_speaks_against_measuring(changes: dict[str, Any], line: str | None) -> None:
    assert busy(replace(IDLE, **changes), own_pids=(7,)) == line


def test_foreign_allows_for_pids_of_another_namespace() -> None:
    reading = replace(IDLE, processes=((900_001, 5), (900_002, 9), (4242, 1)))
    known = {4242}.__contains__
    # Two of ours are not listed under our pids, so the two that are unknown here may be they; 4242 lives here and is not ours.
    assert foreign(reading, (11, 12), known) == ((4242, 1),)
    # One of ours: the larger of the two unknown may be it.
    assert foreign(reading, (11,), known) == ((900_001, 5), (4242, 1))
    # Where ours is listed, nobody unknown can be ours.
    assert foreign(replace(reading, processes=((11, 3), (900_001, 5))), (11,), {11}.__contains__) == ((900_001, 5),)
    assert foreign(reading, (), known) == reading.processes


def test_find_and_read(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = use(FakeNvml(), monkeypatch)
    (card,) = gpus.find()
    assert card == Gpu(0, "GPU-aa-11", "NVIDIA H200", 140 * GIB, "580.1")
    reading = gpus.read(card)
    assert replace(reading, time=0.0) == Reading(
        time=0.0, sm_mhz=1980, memory_mhz=3201, temperature_c=41, power_w=120.5,
        throttle=("power cap", "thermal slowdown (hardware)"), used_bytes=GIB, free_bytes=139 * GIB,
        processes=((os.getpid(), None),), utilisation=50,
    )  # fmt: skip
    assert gpus.cuda_version() == "12.8"
    assert fake.open == 0


@pytest.mark.parametrize("error", [pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_NO_PERMISSION])
def test_fields_that_a_virtual_machine_does_not_tell_are_none(error: int, monkeypatch: pytest.MonkeyPatch) -> None:
    fields = "MemoryInfo ClockInfo Temperature PowerUsage CurrentClocksEventReasons ComputeRunningProcesses UtilizationRates"
    use(FakeNvml(frozenset(fields.split()), error), monkeypatch)
    reading = gpus.read(CARDS[0])
    assert reading == Reading(reading.time, *[None] * 9)
    assert busy(reading) is None
    assert gpus.find()[0].memory_bytes == 0


def test_a_lost_card_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = use(FakeNvml(frozenset({"HandleByUUID"}), pynvml.NVML_ERROR_GPU_IS_LOST), monkeypatch)
    with pytest.raises(GpuUnavailable, match=r"cuda:0 \(NVIDIA H200\) does not answer: GPU is lost"):
        gpus.read(CARDS[0])
    assert fake.open == 0


def test_no_driver_is_no_gpu_but_a_broken_driver_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    use(FakeNvml(frozenset({"Init"}), pynvml.NVML_ERROR_DRIVER_NOT_LOADED), monkeypatch)
    assert gpus.find() == ()
    assert gpus.cuda_version() is None
    use(FakeNvml(frozenset({"Init"}), pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH), monkeypatch)
    with pytest.raises(GpuUnavailable, match=r"the NVIDIA driver does not answer: RM has detected"):
        gpus.find()
    with pytest.raises(ValueError, match=r"device 'auto': the NVIDIA driver does not answer: .*; use cpu for modelled time"):
        select("auto")


def test_wait_idle_asks_again_until_the_past_second_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = use(FakeNvml(frozenset({"CurrentClocksEventReasons"})), monkeypatch)
    assert gpus.wait_idle(CARDS[0], (os.getpid(),), seconds=0) == "kernels ran 50 % of the last second"

    def sleep(seconds: float) -> None:
        fake.utilisation = 0

    monkeypatch.setattr(gpus, "time", SimpleNamespace(sleep=sleep, monotonic=lambda: 0.0, time=lambda: 0.0))
    fake.reads = 0
    assert gpus.wait_idle(CARDS[0], (os.getpid(),), seconds=3) is None
    assert fake.reads == 2


@pytest.mark.skipif(os.path.exists("/proc/driver/nvidia"), reason="tests of no GPU (a machine without an NVIDIA driver)")
def test_without_a_driver_there_is_no_gpu() -> None:
    assert gpus.find() == ()


@pytest.mark.gpu
def test_the_real_card() -> None:
    cards = gpus.find()
    assert cards and [card.index for card in cards] == list(range(len(cards)))
    reading = gpus.read(cards[0])
    assert cards[0].uuid.startswith("GPU-") and cards[0].memory_bytes > GIB
    assert reading.sm_mhz is None or 100 <= reading.sm_mhz <= 4000
    assert reading.temperature_c is None or 5 <= reading.temperature_c <= 110
    assert reading.used_bytes is None or 0 <= reading.used_bytes <= cards[0].memory_bytes
    assert reading.free_bytes is None or 0 < reading.free_bytes <= cards[0].memory_bytes
    version = gpus.cuda_version()
    assert version is not None and int(version.split(".")[0]) >= 12


def test_equal_cards_have_one_name() -> None:
    other = Gpu(3, "GPU-dd-11", "NVIDIA H100 80GB HBM3", 80 * GIB, "580.1")
    assert gpus.models(CARDS) == gpus.models(CARDS[:1]) == "NVIDIA H200"
    assert gpus.models((*CARDS, other)) == "NVIDIA H200 + NVIDIA H100 80GB HBM3"
    assert gpus.models(()) == ""
