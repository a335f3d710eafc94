"""Measurements of a card whose host is busy, or which others use: they may only make a floor lower."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import pytest

from rlkernel.evaluator.devices import H200
from rlkernel.evaluator.gpu.attempts import ATTEMPTS, FIRST_SPIN_US, MOST_SPIN_US, bandwidth, launch_cost
from rlkernel.evaluator.judging.costs.roofline import physical_floor_us

LAUNCHES = 100
LAUNCH_US = 1.5


@dataclass
class PlayedCard:
    """A card whose launches take 1.5 us, and a host that takes a while to enqueue each: on average `host_us`."""

    host_us: float
    seed: int = 0
    spins: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)

    def attempt(self, spin_us: float) -> tuple[float, bool]:
        self.spins.append(spin_us)
        enqueued, done = 0.0, spin_us
        for _ in range(LAUNCHES):
            enqueued += self.rng.expovariate(1 / self.host_us)
            done = max(done, enqueued) + LAUNCH_US
        held_up = enqueued > spin_us
        return (done - spin_us) / LAUNCHES, held_up


def test_a_busy_host_is_given_more_time() -> None:
    for host_us in (5.0, 50.0, 300.0):  # 100 launches take it half a millisecond, 5 ms and 30 ms
        card = PlayedCard(host_us)
        assert launch_cost(card.attempt) == pytest.approx(LAUNCH_US)
    assert (card.spins[0], max(card.spins)) == (FIRST_SPIN_US, MOST_SPIN_US)


def test_one_quiet_attempt_is_enough() -> None:
    times = [(70.0, True)] * (ATTEMPTS - 1)
    times.insert(ATTEMPTS // 2, (LAUNCH_US, False))
    assert launch_cost(lambda spin_us: times.pop()) == LAUNCH_US
    # A copy of 1 GiB at 4 TB/s takes 537 us; the others shared the memory.
    assert round(bandwidth(1 << 30, [537.0, 1600.0, 900.0]) / 1e6, 2) == 4.0


def test_what_is_measured_may_only_lower_the_floor() -> None:
    written = 1 << 30
    usual = physical_floor_us(written, H200)
    for launch_us in (0.8, 2.5, 68.0):
        for rate in (0.1, 0.5, 1.0, 1.2):
            found = replace(H200, launch_us=launch_us, dram_bytes_per_us=rate * H200.dram_bytes_per_us)
            assert physical_floor_us(written, found) <= usual
            assert physical_floor_us(0, found) <= 0.5
    # 3201 MHz x 2 x 6144 bits / 8 are 4.9 TB/s: what exceeds 50 MiB of L2 takes 208 us there, and nine tenths are the floor.
    assert round(usual) == round(0.9 * (written - H200.l2_bytes) / (2 * H200.memory_khz / 1000 * H200.bus_bits / 8))
