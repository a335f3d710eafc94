"""A whole stay on a machine without a GPU: rounds and trials as they are, on the CPU. Kernels and the clock are played."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from rlkernel.evaluator.compile.binaries import Compiled
from rlkernel.evaluator.judging.errors.comparison import quick_sums
from rlkernel.evaluator.messages.gpu import Judged, Known
from rlkernel.evaluator.messages.judgement import InputFate, Stress, Tolerance
from rlkernel.evaluator.program.first_call import FIRST_CALL
from rlkernel.evaluator.program.schema import Config, Launch, Op, Program, Tuning
from rlkernel.evaluator.program.values import DeviceRef, TensorRef
from rlkernel.types import TIMING_WIDTH, Closeness, Precision
from tests.evaluator.gpu.test_stopwatch import Event
from tests.evaluator.gpu.test_subject import KERNEL, compiled

SOURCE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return 2 * x

def get_inputs():
    return [torch.randn(4, 8)]

def get_init_inputs():
    return []
"""
EMPTY = Op("aten.empty_like.default", (TensorRef(1),), {"device": DeviceRef()}, (2,))
DOUBLE = Launch(0, {"x": TensorRef(1), "y": TensorRef(2)}, (Config({}, {}, (1, 1, 1)),), 9)
PROGRAM = Program((KERNEL,), (), (), {}, (1,), (EMPTY, DOUBLE), TensorRef(2))
LIMIT = (Tolerance(1e-5, 1e-3),)
KNOWN = Known(
    dict.fromkeys(("plain", "stress", "timed"), LIMIT), Stress.SCALED, None, False, (InputFate.KEPT,), (), False, False, True, ()
)
BINARY = compiled("cubin")
Kernel = Callable[[dict[str, Any], int], None]
"""(the arguments of a launch, how many launches came before)"""


class Clock:
    """A stopwatch in which each run takes 100 us more or less; `void`: the numbers of runs with gaps."""

    def __init__(self, room: Any, void: frozenset[int] = frozenset()) -> None:
        self.spins: list[float] = []
        self._room, self._void = room, void

    def run(self, forward: Callable[[], Any], spin_us: float, *, unless_busy: bool = False) -> tuple[Any, Any]:
        number = len(self.spins)
        self.spins.append(spin_us)
        took = Event(0.1 + 0.001 * (number // 2 % 2))
        return forward(), self._room.stopwatch.Run(Event(0.0), took, 60.0, number in self._void)


@pytest.fixture
def stay(room: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Judged, Any]]:
    """(kernel, void runs) -> what is found of a candidate of one launch, and the clock."""
    monkeypatch.setattr(room.session, "step_times", lambda *given: [])
    for module in (room.rounds, room.session):
        monkeypatch.setattr(module, "settle", lambda *given: None)
    monkeypatch.setattr(room.queue, "mark", lambda: None)
    monkeypatch.setattr(room.queue, "wait", lambda *given: None)

    def judged(
        kernel: Kernel, void: frozenset[int] = frozenset(), known: Known = KNOWN, program: Program = PROGRAM,
        binary: Compiled = BINARY,
    ) -> tuple[Judged, Any]:  # fmt: skip
        count = iter(range(1000))
        launched = SimpleNamespace(launch=lambda grid, args, stream: kernel(args, next(count)))
        subject = room.subject.Subject(program, {"1": {0: binary}}, {"cubin": launched}, 1.0)
        clock, fused = Clock(room, void), SimpleNamespace(sums=quick_sums)
        session = room.session.Session(
            room.problem.GpuProblem(SOURCE, "double"), known, fused, subject, None, Precision.PYTORCH, 1.0,
            stopwatch=clock, modal=False, timing_width=TIMING_WIDTH,
        )  # fmt: skip
        return room.runner.whole_stay(session), clock

    return judged


def double(args: dict[str, Any], number: int) -> None:
    args["y"].copy_(2 * args["x"])


def test_a_right_candidate_is_timed(stay: Any) -> None:
    found, clock = stay(double)
    assert (found.matches, found.detail, found.live, found.close) == (True, "", {0: True}, Closeness.TIGHT)
    assert found.measured.speedup.trials >= 5 and len(clock.spins) == 2 * found.measured.speedup.trials
    assert found.measured.speedup.value == pytest.approx(1.0)


@pytest.mark.parametrize("first", [0, 1, 2, 3, 5])
def test_a_candidate_that_is_wrong_from_some_call_on_is_wrong(stay: Any, first: int) -> None:
    """The first launch is that of the stressed round."""

    def kernel(args: dict[str, Any], number: int) -> None:
        args["y"].copy_((2.0 if number < first else 2.1) * args["x"])

    found, _ = stay(kernel)
    assert not found.matches and found.detail.startswith("output is wrong: relative error 5.00e-02, allowed ")
    assert (found.measured, found.close) == (None, Closeness.NO if first < 2 else Closeness.TIGHT)


def test_a_miss_that_is_too_large_for_a_second_look_is_wrong(stay: Any, monkeypatch: pytest.MonkeyPatch, room: Any) -> None:
    def no_room(*given: Any) -> Any:
        raise torch.OutOfMemoryError

    def kernel(args: dict[str, Any], number: int) -> None:
        args["y"].copy_(2.1 * args["x"])

    monkeypatch.setattr(room.session, "look_closer", no_room)
    found, _ = stay(kernel)
    assert not found.matches and found.detail.endswith(", and the GPU has no memory for a second look")
    # Nor is there any for a look at the problem's own inputs, by which KernelBench compares.
    monkeypatch.setattr(room.session, "closeness", no_room)
    found, _ = stay(kernel)
    assert not found.matches and found.detail.endswith(", and the GPU has no memory for a second look")
    assert "inputs scaled by 8" in found.detail and found.close is None


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5])
def test_one_call_that_leaves_an_element_is_seen(stay: Any, number: int) -> None:
    """The memory holds what was written over it before the call. The next calls, which are looked at alone, are right."""

    def kernel(args: dict[str, Any], now: int) -> None:
        args["y"].copy_(2 * args["x"])
        if now >= number:
            args["y"][3, 7] = 100.0

    found, _ = stay(kernel)
    assert not found.matches and found.measured is None


def test_a_candidate_that_changes_its_input_is_wrong(stay: Any, monkeypatch: pytest.MonkeyPatch, room: Any) -> None:
    monkeypatch.setattr(room.trials, "INPUTS_CHECKED", 1)

    def kernel(args: dict[str, Any], now: int) -> None:
        args["y"].copy_(2 * args["x"])
        if now:
            args["x"].zero_()

    found, _ = stay(kernel)
    assert found.detail == "forward changes its input 0 when it is timed, the reference does not"


def test_tensors_lie_elsewhere_in_each_trial(stay: Any, monkeypatch: pytest.MonkeyPatch, room: Any) -> None:
    """What may lie in the way is as large as the inputs and outputs, up to 11 blocks of each."""
    drawn: list[int] = []
    monkeypatch.setattr(room.trials.secrets, "randbelow", lambda most: (drawn.append(most), most - 1)[1])
    made: list[int] = []
    storage = torch.UntypedStorage
    monkeypatch.setattr(torch, "UntypedStorage", lambda size, device: (made.append(size), storage(size, device=device))[1])
    found, _ = stay(double)
    later = found.measured.speedup.trials - 1
    assert made == [128] * 22 * later
    assert drawn == [48, 8] + [12, 12, 48, 8] * later


@pytest.mark.parametrize(("tuning", "right"), [(None, True), (Tuning(), False), (Tuning(restored=("x",)), True)])
def test_a_kernel_that_tuning_runs_on_its_own_results_is_wrong_in_the_first_call(
    stay: Any, tuning: Tuning | None, right: bool
) -> None:
    """It halves four times the input where that lies: 2 x, and x once it has run before."""
    four = Op("aten.mul.Tensor", (TensorRef(1), 4.0), {}, (2,))
    halve = Launch(0, {"x": TensorRef(2)}, (Config({}, {}, (1, 1, 1)),), 9, tuning=tuning)
    in_place = Program((KERNEL,), (), (), {}, (1,), (four, halve), TensorRef(2))
    binary = replace(BINARY, stores=("x",), loads=("x",))
    found, _ = stay(lambda args, number: args["x"].mul_(0.5), program=in_place, binary=binary)
    assert (found.matches, found.detail) == ((True, "") if right else (False, FIRST_CALL))
