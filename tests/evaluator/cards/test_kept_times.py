"""Which of the references' times are stored, and what counts as drift. The card is played here."""

from __future__ import annotations

import pytest

from rlkernel.evaluator.cards import kept_times
from rlkernel.evaluator.cards.baselines import BaselineStore
from rlkernel.evaluator.cards.gpus import Gpu, GpuUnavailable, Reading
from rlkernel.evaluator.cards.kept_times import KeptTimes
from rlkernel.evaluator.messages.gpu import Speedup
from rlkernel.types import Precision
from tests.evaluator.cards.played import READING, RELU

CARD = Gpu(0, "GPU-0", "NVIDIA H200", 140 << 30, "580.1")
pytestmark = pytest.mark.anyio


def timed(us: float) -> Speedup:
    return Speedup(us / 50.0, 1.9, 2.1, us, us - 1, us + 1, 50.0, 9)


async def test_times_are_stored_once_and_drift_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_times, "read", lambda gpu: READING)
    times = KeptTimes(BaselineStore(None), precision=Precision.PYTORCH)
    for us in (100.0, 100.5, 110.0):
        await times.keep(CARD, RELU, timed(us), None)
    place = await times.place(CARD)
    assert place is not None
    assert [row.eager_us for row in times.baselines.history(RELU, place)] == [100.0, 110.0]
    assert times.drifts == 1


async def test_a_time_under_torch_compile_is_added_to_a_stored_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_times, "read", lambda gpu: READING)
    times = KeptTimes(BaselineStore(None), precision=Precision.PYTORCH)
    assert await times.compiled_us(CARD, RELU) is None
    for compiled_us in (None, 40.0, 41.0):
        await times.keep(CARD, RELU, timed(100.0), compiled_us)
    assert await times.compiled_us(CARD, RELU) == 40.0
    assert (len(times.baselines), times.drifts) == (1, 0)


async def test_a_card_that_does_not_tell_its_state_costs_the_store_and_not_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(gpu: Gpu) -> Reading:
        raise GpuUnavailable("cuda:0 does not answer")

    monkeypatch.setattr(kept_times, "read", lost)
    times = KeptTimes(BaselineStore(None), precision=Precision.PYTORCH)
    await times.keep(CARD, RELU, timed(100.0), None)
    assert len(times.baselines) == 0
    assert await times.compiled_us(CARD, RELU) is None
