"""How long references take on each card: kept in a `BaselineStore`, with drift noticed."""

from __future__ import annotations

from dataclasses import replace

import anyio.to_thread

from rlkernel.evaluator.cards.baselines import Baseline, BaselineStore, Provenance, drift
from rlkernel.evaluator.cards.gpus import Gpu, GpuUnavailable, Reading, read
from rlkernel.evaluator.messages.gpu import Speedup
from rlkernel.types import Precision, Problem


class KeptTimes:
    """Fills a store with what evaluations measure of references. `precision`: the one that these had."""

    def __init__(self, baselines: BaselineStore, *, precision: Precision) -> None:
        self.baselines = baselines
        self.drifts = 0
        """References whose time was found to differ from the stored one."""
        self._precision = precision
        self._places: dict[str, Provenance] = {}
        """A GPU's UUID -> the key under which its times are stored."""

    async def compiled_us(self, gpu: Gpu, problem: Problem) -> float | None:
        """The stored time of a reference under torch.compile; None where there is none."""
        place = await self.place(gpu)
        stored = None if place is None else self.baselines.get(problem, place)
        return None if stored is None else stored.compiled_us

    async def place(self, gpu: Gpu) -> Provenance | None:
        """The key under which this GPU's times are stored; None while the card does not tell its state."""
        if gpu.uuid not in self._places:
            reading = await _reading(gpu)
            if reading is None:
                return None
            self._places[gpu.uuid] = Provenance.here(gpu, reading, self._precision)
        return self._places[gpu.uuid]

    async def keep(self, gpu: Gpu, problem: Problem, timed: Speedup, compiled_us: float | None) -> None:
        """Store the reference's time, with the clocks of now, if it is the first, has drifted, or adds torch.compile."""
        place = await self.place(gpu)
        if place is None:
            return
        new = Baseline(timed.reference_us, timed.reference_low_us, timed.reference_high_us, compiled_us, timed.trials, place)
        stored = self.baselines.get(problem, place)
        drifted = stored is not None and drift(stored, new.eager_us, new.eager_low_us, new.eager_high_us) is not None
        self.drifts += drifted
        if stored is None or drifted or (compiled_us is not None and stored.compiled_us is None):
            reading = await _reading(gpu)
            if reading is not None and self.baselines.get(problem, place) is stored:  # no neighbour was first
                self.baselines.put(problem, replace(new, provenance=Provenance.here(gpu, reading, self._precision)))


async def _reading(gpu: Gpu) -> Reading | None:
    """The card's state, which may take the driver a while. None: no verdict is lost because a card's clocks are not known."""
    try:
        return await anyio.to_thread.run_sync(read, gpu)
    except GpuUnavailable:
        return None
