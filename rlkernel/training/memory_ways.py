"""What would make a run fit that does not: each way is planned like the run, and only one that fits is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rlkernel.training.memory import GIB, MICRO_TOKENS, Demand, MemoryPlan, plan_model

Way = Mapping[str, Any]
"""Field of a `Demand`, or `evaluation_gib` -> its other value."""
RANK = 32
"""The rank of the adapters that are offered."""
TOKENS = 64
"""Fewer new tokens are offered in multiples of this, and no fewer than two of them: shorter answers are no kernels."""
CARDS = 8
"""The most cards of a host that is not here."""
MOST = 4
"""So many ways are told at most."""
FLAGS_OF_A_RUN = ("weights", "evaluation_gib", "max_new_tokens")
"""The fields of a way that are flags of every experiment."""


@dataclass(frozen=True)
class Room:
    """The memory that a policy has, and what it would have otherwise."""

    limit: int
    """The bytes that this process may take."""
    gpu: bool
    """Whether they are a card's, and not the machine's."""
    others: str = ""
    """Who has the rest of the card, in words."""
    beside: Callable[[int], int] | None = None
    """The limit beside evaluations that have so many GiB; None: they share no card with the policy."""
    piece_bytes: int = 0
    """The limit of one of several processes, each with such a card of its own."""
    cards: int = 0
    """How many such cards there are, at most."""

    def plan(self, demand: Demand, model: Any, micro_tokens: int = MICRO_TOKENS, limit: int | None = None) -> MemoryPlan:
        """The memory of a run of the model in this room, or in one with another limit."""
        limit = self.limit if limit is None else limit
        return plan_model(demand, model, limit, gpu=self.gpu, micro_tokens=micro_tokens, others=self.others)


def ways(demand: Demand, model: Any, room: Room, micro_tokens: int = MICRO_TOKENS) -> list[Way]:
    """The ways that make a run fit, at most `MOST`: of one change each, or of two where no single one is enough. More cards come
    last, and hide no way that does with one."""
    search, changes = _Search(model, room, micro_tokens), list(_changes(demand))
    found = [way for way in changes if search.fits(replace(demand, **way))] + search.numbers(demand)
    found = found or [{**way, **number} for way in changes for number in search.numbers(replace(demand, **way))]
    pieces = search.pieces(demand)
    if not pieces and not found:
        pieces = [{**way, **more} for way in changes for more in search.pieces(replace(demand, **way))]
    return found[: MOST - len(pieces[:1])] + pieces[:1]


def as_flags(way: Way) -> str:
    """A way as flags of `rlkernel doctor`.

    >>> as_flags({"weights": "bfloat16", "evaluation_gib": 18})
    '--weights bfloat16 --evaluation-gib 18'
    >>> as_flags({"pieces": 5, "gib": 78})
    '--pieces 5 --gib 78 (without --card-gib and --evaluation-gib)'
    """
    flags = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in way.items())
    return f"{flags} (without --card-gib and --evaluation-gib)" if "gib" in way else flags


def as_settings(way: Way) -> str:
    """A way as whoever starts a run writes it: a flag of every experiment, or a field of `Run`.

    >>> as_settings({"weights": "float32", "lora_rank": 32}), as_settings({"pieces": 2, "gib": 78})
    ('--weights float32 and Run.lora_rank=32', 'the weights in 2 pieces (docs/larger.md)')
    """
    told = []
    for name, value in way.items():
        if name == "pieces":
            told.append(f"the weights in {value} pieces (docs/larger.md)")
        elif name != "gib":
            told.append(as_flags({name: value}) if name in FLAGS_OF_A_RUN else f"Run.{name}={value}")
    return " and ".join(told)


def _changes(demand: Demand) -> Iterator[Way]:
    """Other values of the fields that have no number to look for; each way is one that `Run` takes."""
    if demand.staleness:
        yield {"staleness": 0}
    if demand.weights == "float32" and not demand.lora_rank and demand.rule == "adamw" and demand.pieces == 1:
        yield {"weights": "bfloat16"}
    if not demand.lora_rank:
        yield {**_exact(demand), "lora_rank": RANK}


def _exact(demand: Demand) -> Way:
    """What adapters and pieces want of the weights."""
    return {} if demand.weights == "float32" else {"weights": "float32"}


@dataclass(frozen=True)
class _Search:
    """Looks for the numbers with which a run fits."""

    model: Any
    room: Room
    micro_tokens: int

    def fits(self, demand: Demand, limit: int | None = None) -> bool:
        return self.room.plan(demand, self.model, self.micro_tokens, limit).fits

    def numbers(self, demand: Demand) -> list[Way]:
        """Ways of one number each, the one nearest to what was asked for."""
        found: list[Way] = []
        if gib := self._evaluation_gib(demand):
            found.append({"evaluation_gib": gib})
        whole = (demand.max_new_tokens - 1) // TOKENS
        if (count := most(lambda n: self.fits(replace(demand, max_new_tokens=n * TOKENS)), whole)) > 1:
            found.append({"max_new_tokens": count * TOKENS})
        return found

    def _evaluation_gib(self, demand: Demand) -> int:
        """The most GiB of evaluations beside which a run fits; 0: none."""
        if self.room.beside is None:
            return 0
        beside = self.room.beside
        # Evaluations never have more than half of the card.
        return most(lambda gib: self.fits(demand, beside(gib)), -(-self.room.limit // GIB))

    def pieces(self, demand: Demand) -> list[Way]:
        """The fewest pieces with which a run fits, if there are so many cards."""
        room = self.room.piece_bytes
        alone = room == self.room.limit  # what is asked about is such a card
        limit = room if alone else room // GIB * GIB
        for count in range(demand.pieces + 1, self.room.cards + 1):
            way = {**_exact(demand), "pieces": count}
            if self.fits(replace(demand, **way), limit):
                return [way if alone else {**way, "gib": room // GIB}]
        return []


def most(holds: Callable[[int], bool], top: int) -> int:
    """The greatest number of 1 .. top for which something holds that holds for all smaller ones, too; 0: for none.

    >>> most(lambda n: n <= 5, 9), most(lambda n: True, 9), most(lambda n: False, 9), most(lambda n: True, 0)
    (5, 9, 0, 0)
    """
    low = 0
    while low < top:
        middle = (low + top + 1) // 2
        low, top = (middle, top) if holds(middle) else (low, middle - 1)
    return low
