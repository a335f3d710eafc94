"""Which trials count: gaps in a candidate's run are its own loss at last, gaps in the reference's are nobody's gain."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from rlkernel.evaluator.judging.errors.comparison import Match
from rlkernel.evaluator.messages.judgement import Tolerance
from rlkernel.types import Precision
from tests.evaluator.gpu.test_stopwatch import Event


def trial(room: Any, *, void: tuple[bool, bool] = (False, False), host_us: float = 20.0, **rest: Any) -> Any:
    """A candidate's run of 50 us and a reference's of 100 us; `void`: which of them has gaps."""
    candidate = room.stopwatch.Run(Event(0.0), Event(0.05), host_us, void[0])
    reference = room.stopwatch.Run(Event(0.0), Event(0.1), 2 * host_us, void[1])
    return room.trials.Trial(candidate, reference, **{"checks": None, "match": None, "sums": [], **rest})


@pytest.mark.parametrize(
    ("void", "gaps", "patient", "counts"),
    [
        ((False, False), False, True, True),
        ((True, False), False, True, False),
        ((True, False), False, False, True),  # the gaps are the candidate's own loss
        ((False, True), False, True, False),
        ((False, True), False, False, False),  # the candidate may be to blame
        ((False, True), True, True, True),  # this reference always has gaps
        ((True, True), True, True, False),
        ((True, True), True, False, True),
        ((True, True), False, False, False),
    ],
)
def test_which_trials_count(room: Any, void: tuple[bool, bool], gaps: bool, patient: bool, counts: bool) -> None:
    made = room.trials.Made()
    made.add(trial(room, void=void), gaps=gaps, patient=patient)
    assert made.void == (not counts)
    assert [round(us, 6) for us in made.candidate_us] == [50.0] * counts
    assert [round(us, 6) for us in made.reference_us] == [100.0] * counts
    assert made.host_us == [20.0] * counts
    assert made.slow_hosts_us == ([] if counts else [20.0, 40.0])


class Scripted:
    """Trials of which each is played: whether its runs are void is told by the spin before them, and each takes `seconds`."""

    def __init__(self, room: Any, monkeypatch: pytest.MonkeyPatch, *, enough_us: tuple[float, float], seconds: float) -> None:
        self.spins: list[float] = []
        self._room, self._enough_us, self._seconds, now = room, enough_us, seconds, [0.0]
        monkeypatch.setattr(room.trials.time, "perf_counter", lambda: now[0])
        self.trials = trials_of(room)
        self.trials.problem = SimpleNamespace(
            model=lambda seed: None, first_inputs=lambda *seeds: [], init_tensors=lambda seed: []
        )
        self.trials.subject = SimpleNamespace(calls_before=0, construct=lambda *given: None, steps=1)
        for name, value in {"rows": [], "gaps": False, "plain": True, "host_us": 0.0}.items():
            setattr(self.trials.known, name, value)
        monkeypatch.setattr(room.trials.Trials, "_trial", lambda _, model, spin, unless_busy: self.played(spin, now))
        monkeypatch.setattr(room.trials.Trials, "_still_intact", lambda *given: None)

    def played(self, spin: float, now: list[float]) -> Any:
        now[0] += self._seconds
        self.spins.append(spin)
        self.trials.close = "1e-4"
        void = tuple(spin < enough for enough in self._enough_us)
        return trial(self._room, void=void, host_us=90.0, match=Match(True))


@pytest.mark.parametrize("seconds", [0.001, 4.0])
@pytest.mark.parametrize("enough_us", [(150.0, 50.0), (50.0, 150.0), (150.0, 150.0), (307.0, 307.0)])
def test_a_slow_draw_of_inputs_ends_no_trials(
    room: Any, monkeypatch: pytest.MonkeyPatch, seconds: float, enough_us: tuple[float, float]
) -> None:
    """The first spin, of 100 us, is too short for this host, which takes 90 us and 180 us, and more at first."""
    one = Scripted(room, monkeypatch, enough_us=enough_us, seconds=seconds)
    timed, host_us, match = one.trials.run()
    assert (timed.trials, host_us, match.matches) == (5, 90.0, True)
    assert (round(timed.candidate_us, 6), round(timed.reference_us, 6)) == (50.0, 100.0)
    assert one.spins == [100.0, *[pytest.approx(1.6 * 180.0 + 20.0)] * 5]


@pytest.mark.parametrize(
    ("host_us", "gaps", "graphs", "spin"),
    [
        (20.0, False, False, 100.0),
        (180.0, False, False, 1.6 * 180.0 + 20.0),
        (180.0, True, False, 100.0),  # a host that waits for the GPU: no spin helps
        (180.0, False, True, 100.0),  # a graph is enqueued at once
        (90_000.0, False, False, 1.6 * 200.0 + 20.0),
    ],
)
def test_the_first_spin_is_by_what_the_host_takes_for_the_reference(
    room: Any, host_us: float, gaps: bool, graphs: bool, spin: float
) -> None:
    trials = trials_of(room)
    trials.known.host_us, trials.known.gaps, trials.graphs = host_us, gaps, graphs
    assert trials._first_spin() == pytest.approx(spin)


@pytest.mark.parametrize("seconds", [0.001, 4.0])
def test_a_candidate_beside_which_the_reference_is_always_held_up_has_no_time(
    room: Any, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    one = Scripted(room, monkeypatch, enough_us=(0.0, 1e9), seconds=seconds)
    with pytest.raises(room.trials.Unmeasured):
        one.trials.run()
    # One alone, and batches of five: for a second, and more than eight of them.
    assert len(one.spins) == {0.001: 1001, 4.0: 11}[seconds]


@pytest.mark.parametrize("seconds", [0.001, 4.0])
def test_gaps_of_a_candidate_that_no_spin_covers_are_its_own_loss(
    room: Any, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    one = Scripted(room, monkeypatch, enough_us=(1e9, 0.0), seconds=seconds)
    assert one.trials.run()[0].trials == 5
    # One alone, and batches of five: tried again for a fifth of a second, and at least in one batch.
    assert len(one.spins) == {0.001: 201, 4.0: 11}[seconds]


def test_a_host_that_waits_for_the_gpu_asks_for_no_longer_spin(room: Any) -> None:
    made = room.trials.Made()
    made.add(trial(room, void=(True, False), host_us=30_000.0), gaps=False, patient=True)
    assert made.slow_hosts_us == [10_000.0, 10_000.0]


def trials_of(room: Any, allowed: float = 1e-3) -> Any:
    known = SimpleNamespace(allowed={"timed": [Tolerance(allowed, 0.2)]})
    return room.trials.Trials(None, known, None, None, None, precision=Precision.PYTORCH, seconds=1.0)


def sums(miss: float, size: float, largest: float) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """The sums of an output of four elements: sum (a - b)^2, sum b^2, largest |a - b|."""
    return [(torch.tensor([miss, size, largest], dtype=torch.float64), torch.empty(4, device="meta"))]


def checks_of(room: Any) -> Any:
    return room.checks.Checks(SimpleNamespace())


def test_a_batch_that_matches_is_told_for_certain(room: Any) -> None:
    trials = trials_of(room)
    batch = [trial(room, checks=checks_of(room), sums=sums(0.0, 4.0, 0.0)) for _ in range(2)]
    assert trials._told(batch) == (Match(True), True)
    assert (trials.careful, trials.worst) == (False, 0.0)


def test_numbers_that_are_not_fine_make_the_next_trials_careful(room: Any) -> None:
    trials = trials_of(room)
    # ||a - b|| / ||b|| = sqrt(1 / 4) = 0.5
    batch = [trial(room, checks=checks_of(room), sums=sums(*s)) for s in ((0.0, 4.0, 0.0), (1.0, 4.0, 1.0))]
    assert trials._told(batch) == (Match(True), False)
    assert (trials.careful, trials.worst) == (True, pytest.approx(0.5))


def test_the_first_miss_of_a_batch_decides(room: Any) -> None:
    trials = trials_of(room)
    misses = [Match(False, "first"), Match(False, "second")]
    batch = [trial(room, match=Match(True)), *(trial(room, match=miss) for miss in misses)]
    assert trials._told(batch) == (misses[0], True)
