"""Which card samples and trains, which cards evaluate, and whether they share one.

GPUs    --device auto                      who waits for a card
none    all on the CPU, modelled time      nobody
one     all on it                          sampling, training beside evaluations, and candidates: one queue
more    cuda:0 samples and trains,         candidates, for the cards of the evaluator
        the others evaluate

Of n processes that train one run (`rlkernel.training.ranks`), each has a card, the first n; the cards beside them evaluate, or
the CPU.

With --device ray, the nodes of a Ray cluster evaluate, and the policy has a card of this machine that is not among theirs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Sequence, Set
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from rlkernel.config import Run
from rlkernel.errors import UsageError
from rlkernel.evaluator.cards import gpus
from rlkernel.evaluator.cards.at_hand import runner_memory
from rlkernel.evaluator.cards.gpus import Gpu
from rlkernel.evaluator.config import GIB, EvaluatorConfig, Limits
from rlkernel.evaluator.pool import Pool, open_pool
from rlkernel.evaluator.ray.pool import RayPool, open_ray_pool
from rlkernel.interfaces import CardEvaluator, Evaluator
from rlkernel.training import ranks
from rlkernel.types import TIMING_WIDTH, Precision

RAY = "ray"
"""The device that means a Ray cluster: the one of RAY_ADDRESS, or the one that this machine is in."""
CONTEXT_BYTES = 2 << 30
"""Memory of a card for what no allocator of ours counts of one process: its CUDA context and the libraries' workspaces."""
SEGMENTS = "expandable_segments:True"
"""How the policy's process takes memory of its card. Without it, 5.8 GiB of the 66 beside evaluations lay in pieces too small to
use, and a step of 0.6B ended out of memory."""
ALLOCATOR_VARIABLES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
"""Where torch reads how it allocates."""
SIDE_BY_SIDE = "RLKERNEL_SIDE_BY_SIDE"
"""The environment variable of a trainer process that says how many there are (`rlkernel.training.side_by_side`)."""


def side_by_side() -> int:
    """How many trainer processes share this machine, each with a run of its own: 1 outside of one."""
    return int(os.environ.get(SIDE_BY_SIDE, "1"))


@dataclass(frozen=True, slots=True)
class Placement:
    """Where evaluator and policy are. `device`: the evaluator's, as `open_pool` takes it. `card`: where the policy samples and
    trains; None: on the CPU."""

    device: str
    card: Gpu | None
    shared: bool

    def __str__(self) -> str:
        own = "the CPU" if self.card is None else f"cuda:{self.card.index}"
        if self.shared:
            return f"the policy and the evaluations take turns on {own}" + (
                "" if self.device == own else f"; evaluations also use {self.device}"
            )
        where = {"cpu": "the CPU (modelled time)", RAY: "the nodes of a Ray cluster"}.get(self.device, self.device)
        return f"the policy is on {own}, evaluations on {where}"

    @property
    def shared_uuid(self) -> str | None:
        """What `open_pool` wants as `shared`."""
        return self.card.uuid if self.card is not None and self.shared else None

    def own_bytes(self, config: EvaluatorConfig) -> int:
        """The bytes of its card that the policy may take; 0 where there is no card, or its size is unknown. Policies of runs side
        by side have equal parts."""
        if self.card is None or not self.card.memory_bytes:
            return 0
        runs, others = side_by_side(), 0
        if self.shared:
            others = runner_memory(self.card, config, shared=True) + (runs + 1) * CONTEXT_BYTES
        elif runs > 1:
            others = runs * CONTEXT_BYTES
        return (self.card.memory_bytes - others) // runs

    def limit_memory(self, config: EvaluatorConfig) -> None:
        """Keep this process off the memory that evaluations may take of a shared card, and let what it has be used in any sizes
        (`SEGMENTS`), unless the environment says how it is allocated."""
        if self.card is None or not self.card.memory_bytes:
            return
        own = self.own_bytes(config)
        if self.shared and own <= 0:
            size = self.card.memory_bytes / 2**30
            raise UsageError(
                f"cuda:{self.card.index} has {size:.0f} GiB, too little for a policy and evaluations: use device 'cpu'"
            )
        torch.cuda.set_per_process_memory_fraction(own / self.card.memory_bytes, 0)
        if not any(name in os.environ for name in ALLOCATOR_VARIABLES):
            torch._C._accelerator_setAllocatorSettings(SEGMENTS)


def place(
    device: str, found: Sequence[Gpu] | None = None, own_uuid: str | None = None, others: Sequence[str] | None = None
) -> Placement:
    """The placement for a run's device. found, own_uuid, others: the visible cards, the one that torch uses first, and those on
    which the other processes of this run train, if they are known already.

    Raises ValueError, one line.
    """
    evaluators = select(device, found)
    if own_uuid is None and torch.cuda.is_available():
        own_uuid = _uuid(0)
    if own_uuid is None:
        return Placement(device if device == RAY else _names(evaluators), None, shared=False)
    try:
        cards = gpus.find() if found is None else tuple(found)
    except gpus.GpuUnavailable as error:
        raise ValueError(f"device {device!r}: {error}") from error
    card = next((card for card in cards if card.uuid == own_uuid), None)
    if card is None:
        raise ValueError(f"device {device!r}: the driver does not list the card that torch uses, {own_uuid}")
    others = _other_uuids() if others is None else others
    if others:
        evaluators = _beside(device, evaluators, {own_uuid, *others})
    elif device == "auto" and len(evaluators) > 1:
        evaluators = tuple(other for other in evaluators if other != card)
    return Placement(device if device == RAY else _names(evaluators), card, shared=card in evaluators)


def is_measured(device: str) -> bool:
    """Whether candidates of a run on this device are timed on cards of this machine. A device that cannot be used is not."""
    try:
        return place(device).device not in ("cpu", RAY)
    except ValueError:  # told when the evaluator is opened
        return False


def _uuid(index: int) -> str:
    """The UUID of torch's card with this index."""
    return f"GPU-{torch.cuda.get_device_properties(index).uuid}"


def _other_uuids() -> list[str]:
    """The cards of the other processes of this run on this machine."""
    processes, cards = ranks.local_size(), torch.cuda.device_count()
    if processes > max(cards, 1):
        raise ValueError(f"{processes} processes train, one per card, and {cards} are visible: start at most {cards} processes")
    return [_uuid(index) for index in range(1, processes)]


def _beside(device: str, evaluators: Sequence[Gpu], training: Set[str]) -> tuple[Gpu, ...]:
    """The cards that evaluate while several train. Raises ValueError: only one process can share a card with evaluations."""
    idle = tuple(card for card in evaluators if card.uuid not in training)
    if device == RAY or (device != "cpu" and (not idle or (device != "auto" and len(idle) < len(evaluators)))):
        raise ValueError(
            f"device {device!r}: {len(training)} processes train, each on its own card, and none of these can evaluate: start "
            "fewer processes than there are cards, or name another card, or cpu"
        )
    return idle


def _names(cards: Sequence[Gpu]) -> str:
    return "cuda:" + ",".join(str(card.index) for card in cards) if cards else "cpu"


def select(device: str, found: Sequence[Gpu] | None = None) -> tuple[Gpu, ...]:
    """`gpus.select`, for devices of a `Run`: a Ray cluster takes no card of this process. Raises ValueError, one line."""
    return () if device == RAY else gpus.select(device, found)


@asynccontextmanager
async def open_any_pool(
    *, device: str, jobs: int, cache_dir: Path | None = None, config: EvaluatorConfig | None = None,
    placement: Placement | None = None,
) -> AsyncIterator[Pool | RayPool]:  # fmt: skip
    """`open_pool` or, for the device `RAY`, `open_ray_pool`. placement: the policy's, if it is in this process too."""
    if device == RAY:
        own = None if placement is None or placement.card is None else placement.card.uuid
        async with open_ray_pool(jobs=jobs, cache_dir=cache_dir, config=config, own=own) as cluster:
            yield cluster
    else:
        shared = None if placement is None else placement.shared_uuid
        async with open_pool(device=device, jobs=jobs, cache_dir=cache_dir, config=config, shared=shared) as pool:
            yield pool


@dataclass(frozen=True, slots=True)
class EvaluatorDemand:
    """What a run demands of its evaluator: runs of equal demands share one. The fields are those of a `Run`."""

    device: str
    jobs: int = 0
    precision: Precision = Precision.PYTORCH
    seed: int | None = None
    """See `EvaluatorConfig.seed`; None where times are measured here."""
    evaluation_gib: int = 0
    timing_width: float = TIMING_WIDTH

    def config(self) -> EvaluatorConfig:
        """How such an evaluator judges."""
        limits = Limits(gpu_memory_bytes=self.evaluation_gib * GIB)
        return EvaluatorConfig(precision=self.precision, timing_width=self.timing_width, seed=self.seed, limits=limits)


def evaluator_of(run: Run) -> EvaluatorDemand:
    """What a run demands of its evaluator."""
    seed = None if is_measured(run.device) else run.seed
    return EvaluatorDemand(run.device, run.jobs, run.precision, seed, run.evaluation_gib, run.timing_width)


@asynccontextmanager
async def open_evaluator(demand: EvaluatorDemand, cache_dir: Path | None) -> AsyncIterator[Pool | RayPool]:
    """The pool that runs demand, whose policy leases the card that they share, if there is one. Says so on standard error, with
    what makes measured times less trustworthy. Raises UsageError."""
    async with AsyncExitStack() as stack:
        try:
            placement, jobs, config = place(demand.device), demand.jobs, demand.config()
            opening = open_any_pool(device=placement.device, jobs=jobs, cache_dir=cache_dir, config=config, placement=placement)
            pool = await stack.enter_async_context(opening)
        except ValueError as error:
            raise UsageError(f"Run.device or Run.jobs: {error}") from error
        placement.limit_memory(pool.config)
        if placement.card is not None or placement.device != "cpu":
            _say(str(placement))
        known = pool.notices
        _say(*known)
        try:
            yield pool
        finally:
            _say(*(line for line in pool.notices if line not in known))


def _say(*lines: str) -> None:
    for line in lines:
        print(line, file=sys.stderr, flush=True)


def describe(evaluator: Evaluator) -> dict[str, Any]:
    """What judges, with every limit, as JSON for a manifest; of an evaluator that is not ours, its class."""
    return evaluator.describe() if isinstance(evaluator, CardEvaluator) else {"class": type(evaluator).__name__}
