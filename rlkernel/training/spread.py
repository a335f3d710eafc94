"""One engine of samples over all processes of a run: each samples its share of the trajectories on its own card.

    process 0   policy -- advance(requests) --> Spread -- Advance --> own engine, and those of the others
                                                      <-- samples --
    others      wait for a batch, and meanwhile do what process 0 asks (`Sampler.answer`)

What is sampled depends on weights, context and seed, and not on where. Where batches are sampled beside training (staleness),
the others have no time: then process 0 samples alone, and they only help to gather weights that are in pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from rlkernel.config import Run
from rlkernel.policy.engine import Engine, Request, Sample, check_idle
from rlkernel.policy.hf import ROUNDINGS, open_engine, stop_ids
from rlkernel.training import ranks, sharding
from rlkernel.training.memory import SLOTS
from rlkernel.training.preflight import plan_here


@dataclass(frozen=True)
class Refresh:
    """Take over the trainer's weights."""


@dataclass(frozen=True)
class Advance:
    """Admit a share of requests, and sample about so many tokens for each in flight."""

    shares: tuple[tuple[Request, ...], ...]
    """The requests that each process takes."""
    tokens: int


class Spread:
    """An `rlkernel.policy.engine.Engine` over the engines of all processes, for the first of them."""

    def __init__(self, make_engine: Callable[[], Engine], *, alone: bool) -> None:
        """alone: only this process samples."""
        self._alone = alone
        self._flying: dict[int, tuple[int, tuple[int, ...]]] = {}
        """The process of each request in flight, and its context."""
        self._held: dict[tuple[int, ...], int] = {}
        """The process that has computed a beginning, by its tokens."""
        ranks.send(Refresh())
        self._own = make_engine()

    @property
    def active(self) -> int:
        return self._own.active if self._alone else len(self._flying)

    @property
    def free(self) -> int:
        if self._alone:
            return self._own.free
        return max(0, (self._own.active + self._own.free) * ranks.size() - self.active)

    def refresh(self) -> None:
        """Take over the trainer's weights in every process; see `Engine.refresh`."""
        check_idle(self)
        self._held.clear()
        ranks.send(Refresh())
        self._own.refresh()

    def advance(self, joining: Sequence[Request], tokens: int) -> list[Sample]:
        """Sample in all processes; see `Engine.advance`."""
        if self._alone:
            return self._own.advance(joining, tokens)
        shares: list[list[Request]] = [[] for _ in range(ranks.size())]
        for request in joining:
            home = self._choose(request)
            self._flying[request.key] = home, request.context_ids
            shares[home].append(request)
        ranks.send(Advance(tuple(map(tuple, shares)), tokens))
        own = self._own.advance(shares[0], tokens)
        found: list[Sample] = [sample for samples in ranks.gather(own) for sample in samples]
        for sample in found:
            home, context_ids = self._flying.pop(sample.key)
            self._held[(*context_ids, *sample.token_ids)] = home
        return found

    def _choose(self, request: Request) -> int:
        """The process that holds the longest beginning of the request's context as long as it is not much fuller than the
        others; else the one with the fewest requests."""
        loads = [0] * ranks.size()
        for home, _ in self._flying.values():
            loads[home] += 1
        best = max(
            (held for held in self._held if request.context_ids[: len(held)] == held and len(held) < len(request.context_ids)),
            key=len,
            default=None,
        )
        if best is not None and loads[self._held[best]] <= min(loads) + 1:
            return self._held[best]
        return min(range(len(loads)), key=loads.__getitem__)


class Sampler:
    """What another process samples with, when the first one asks."""

    def __init__(self, make_engine: Callable[[], Engine]) -> None:
        self._make_engine = make_engine
        self._engine: Engine | None = None

    def answer(self, asked: Refresh | Advance) -> None:
        """Do what the first process asks of all."""
        if isinstance(asked, Advance):
            assert self._engine is not None
            ranks.gather(self._engine.advance(asked.shares[ranks.rank()], asked.tokens))
        elif self._engine is None:
            self._engine = self._make_engine()
        else:
            self._engine.refresh()


def over_processes(run: Run) -> Callable[[Callable[[], Engine]], Engine] | None:
    """What makes a `Spread`; None where processes neither sample together nor gather weights together."""
    if ranks.size() == 1 or ":" in run.engine or (run.staleness and not sharding.active()):
        return None
    return partial(Spread, alone=run.staleness > 0)


def copies(run: Run) -> bool:
    """Whether the sampler has its own copy of the weights wherever it is: they change beside it, or are in pieces."""
    return run.staleness > 0 or sharding.active()


def sampler_of(run: Run, model: Any, tokenizer: Any, micro_tokens: int) -> Sampler:
    """The sampler of another process, like that of the first (`rlkernel.policy.hf.open_policy`)."""

    def make_engine() -> Engine:
        return open_engine(
            run.engine,
            model,
            stop_ids(model, tokenizer),
            run.temperature,
            slots=SLOTS,
            copy=copies(run),
            rounding=ROUNDINGS[run.rollout_dtype],
            cache_bytes=plan_here(run, model.config, micro_tokens).cache_bytes,
        )

    return Sampler(make_engine)
