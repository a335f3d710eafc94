"""A card watched: what is kept of the readings, and that the watch leaves nothing behind."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import anyio
import anyio.lowlevel
import pynvml
import pytest

from rlkernel.evaluator.cards import gpus
from rlkernel.evaluator.cards.gpus import Gpu, Reading
from rlkernel.evaluator.cards.watch import Record, Watch
from tests.evaluator.cards.fake_nvml import GIB, FakeNvml, use

CARD = Gpu(0, "GPU-aa-11", "NVIDIA H200", 140 * GIB, "580.1")
WORKING = Reading(
    time=0.0, sm_mhz=1980, memory_mhz=3201, temperature_c=40, power_w=300.0, throttle=(), used_bytes=GIB, free_bytes=139 * GIB,
    processes=((7, GIB),), utilisation=80,
)  # fmt: skip


def test_record_keeps_extremes_and_everything_unwanted() -> None:
    record = Record()
    here = os.getpid()  # a process that is known to this machine, so it cannot be the host's name for process 7
    for changes in (
        {"temperature_c": 50},
        {"sm_mhz": 1755, "throttle": ("power cap",)},
        {"sm_mhz": 345, "utilisation": 0},  # idle: its clock does not count
        {
            "sm_mhz": None,
            "temperature_c": None,
            "throttle": ("power cap", "sync boost"),
            "processes": ((7, GIB), (here, 3 << 20)),
        },
        {"processes": ((here, 2 << 20),)},
    ):
        record.add(replace(WORKING, **changes), own_pids=(7,))
    assert record.last is not None and record.last.processes == ((here, 2 << 20),)
    assert record.summary() == {
        "samples": 5,
        "sm_mhz": 1980,
        "sm_mhz_min": 1755,
        "sm_mhz_max": 1980,
        "temperature_c_max": 50,
        "throttle": {"power cap": 2, "sync boost": 1},
        "foreign_mib": {str(here): 3},
        "failure": None,
    }


def test_what_was_seen_is_told_in_a_line_each() -> None:
    watch = Watch(CARD, own_pids=lambda: (7,))
    watch.record.add(WORKING, (7,))
    assert watch.notices == ()
    here = os.getpid()
    watch.record.add(replace(WORKING, throttle=("power cap",), processes=((7, GIB), (here, GIB))), (7,))
    assert watch.notices == (
        "cuda:0 (NVIDIA H200) was throttled while it measured: power cap in 1 of 2 readings",
        f"cuda:0 (NVIDIA H200) is used by other processes too ({here}): their work is in our times",
    )


def test_a_record_of_nothing() -> None:
    record = Record()
    assert record.summary() == {
        "samples": 0, "sm_mhz": None, "sm_mhz_min": None, "sm_mhz_max": None, "temperature_c_max": None, "throttle": {},
        "foreign_mib": {}, "failure": None,
    }  # fmt: skip
    record.add(Reading(0.0, *[None] * 9))
    assert record.summary()["sm_mhz_min"] is None and record.samples == 1


@pytest.mark.anyio
async def test_watch_reads_on_entry_and_closes_nvml(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = use(FakeNvml(), monkeypatch)
    with anyio.fail_after(300):
        async with Watch(CARD, interval=3600, own_pids=lambda: {os.getpid()}) as watch:
            assert fake.open == 1
            assert watch.record.last is not None and watch.record.last.power_w == 120.5
    assert fake.open == 0
    summary = watch.summary()
    assert json.loads(json.dumps(summary)) == summary
    assert (summary["gpu"], summary["uuid"], summary["samples"]) == ("NVIDIA H200", "GPU-aa-11", 1)
    assert summary["throttle"] == {"power cap": 1, "thermal slowdown (hardware)": 1}
    assert summary["foreign_mib"] == {}


@pytest.mark.anyio
async def test_watch_samples_until_the_card_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = use(FakeNvml(error=pynvml.NVML_ERROR_GPU_IS_LOST), monkeypatch)
    slept: list[float] = []
    lost = anyio.Event()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            fake.absent = frozenset({"HandleByUUID"})
            lost.set()

    monkeypatch.setattr("rlkernel.evaluator.cards.watch.anyio.sleep", sleep)
    with anyio.fail_after(300):
        async with Watch(CARD, interval=2) as watch:
            await lost.wait()
            while watch.record.failure is None:
                await anyio.lowlevel.checkpoint()
    assert slept == [2, 2, 2]
    assert watch.summary()["samples"] == 3
    assert watch.summary()["failure"] == "cuda:0 (NVIDIA H200) does not answer: GPU is lost"


@pytest.mark.anyio
async def test_the_bodys_error_comes_out_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = use(FakeNvml(), monkeypatch)
    with pytest.raises(KeyError, match="mine"):
        async with Watch(CARD):
            raise KeyError("mine")
    assert fake.open == 0


@pytest.mark.anyio
async def test_cancelling_the_body_ends_the_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = use(FakeNvml(), monkeypatch)
    with anyio.CancelScope() as scope:
        async with Watch(CARD):
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert fake.open == 0


def test_watch_refuses_to_disturb() -> None:
    with pytest.raises(ValueError, match=r"interval is 0\.1 s: use 1 or more"):
        Watch(CARD, interval=0.1)


@pytest.mark.gpu
@pytest.mark.anyio
async def test_watch_of_the_real_card() -> None:
    card = gpus.find()[0]
    asked: list[float] = []
    twice = anyio.Event()

    def own_pids() -> set[int]:
        asked.append(anyio.current_time())
        if len(asked) == 2:
            twice.set()
        return set()

    with anyio.fail_after(300):
        async with Watch(card, own_pids=own_pids) as watch:
            await twice.wait()
    assert watch.record.failure is None
    assert watch.record.samples == 2
    assert watch.summary()["uuid"] == card.uuid
