"""A GPU's runner that is played: it gives the answers that a test has prepared."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from rlkernel.evaluator import wire
from rlkernel.evaluator.cards.gpu_runner import RunnerFailed
from rlkernel.evaluator.cards.gpus import Gpu, Reading
from rlkernel.evaluator.messages import codec
from rlkernel.evaluator.messages.children import StepTime
from rlkernel.evaluator.messages.gpu import Evaluate, Judged, Known, MeasureRates, Study
from rlkernel.evaluator.messages.judgement import InputFate, Stress, Tolerance
from rlkernel.evaluator.messages.oracle import Brief
from rlkernel.evaluator.program.variant import Variant
from rlkernel.types import Problem

RELU = Problem("mine/relu", 1, "train", "import torch\n")
KNOWN = Known(
    {"plain": (Tolerance(1e-6, 1e-3),)},
    Stress.NONE,
    None,
    False,
    (InputFate.KEPT,),
    (),
    False,
    False,
    True,
    (StepTime(0, 3.0, op="aten.relu"),),
)
WRONG = Judged(False, "output is wrong", False, 0.5, {}, {}, None, None)
SPECIFICATION = {"tensor": {"shape": [4], "stride": [1], "dtype": "float32"}}
VARIANT = Variant([[], {"dict": []}], [SPECIFICATION])
BRIEF = Brief((VARIANT, VARIANT), False, 3.0, 1.0, 0.5, 0.0, 0.3, {"steps": []}, (), ())
READING = Reading(
    time=0.0, sm_mhz=1980, memory_mhz=3201, temperature_c=30, power_w=75.0, throttle=(), used_bytes=0, free_bytes=139 << 30,
    processes=(), utilisation=0,
)  # fmt: skip


class PlayedRunner:
    """Gives `answers` in order. waiting: as if so many candidates queued."""

    def __init__(self, number: int, answers: Sequence[Any] = (), *, failed: bool = False, waiting: int = 0) -> None:
        self.gpu = Gpu(number, f"GPU-{number}", "NVIDIA H200", 140 << 30, "580.1")
        self.failed, self.waiting = failed, waiting
        self.fails_in_lease = False
        self.guest = False
        """Whether somebody else has the card now."""
        self.asked: list[tuple[Study | Evaluate | MeasureRates, float]] = []
        self._answers = list(answers)

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[None]:
        if self.failed or self.fails_in_lease:
            self.failed = True
            raise RunnerFailed(f"GPU-{self.gpu.index}")
        yield

    @asynccontextmanager
    async def lease_as_guest(self) -> AsyncIterator[None]:
        self.guest = True
        try:
            yield
        finally:
            self.guest = False

    async def ask(self, question: bytes, seconds: float, *answers: type[Any]) -> Any:
        header, _ = wire.sizes(question[: wire.PREFIX.size])
        self.asked.append(
            (codec.unpack(wire.parse(question[wire.PREFIX.size :][:header]), Study, Evaluate, MeasureRates), seconds)
        )
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer
