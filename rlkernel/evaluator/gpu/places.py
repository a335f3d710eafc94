"""The memory that forward allocates in timed calls: it lies in one of several places, since each place has a speed of its own."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from rlkernel.evaluator.gpu.guards import Guards, Row, fill, words


def places(nbytes: int) -> int:
    """Return in how many places in memory the tensors of timed calls may lie, which take `nbytes` together.

    The smaller they are, the more their place matters and the less another one costs. On an H200, a relu over 1 MiB takes 4 %
    more or less time (standard deviation) in another place; over 8 MiB, 1 %.
    """
    return 48 if nbytes < 4 << 20 else detours(nbytes)


def detours(nbytes: int) -> int:
    """Return how many blocks of `nbytes` may lie in the way of torch's allocator. Each is asked for in every trial."""
    return 12 if nbytes < 8 << 20 else 4 if nbytes < 64 << 20 else 2


class Places(Sequence[Mapping[int, torch.Tensor]]):
    """The memory that forward steps allocate in timed calls, by step and several times over. The tensors of a place are made when
    it is first used."""

    def __init__(self, guards: Guards, count: int, shapes: Mapping[int, tuple[Any, Any, torch.dtype]]) -> None:
        self._made: list[dict[int, torch.Tensor] | None] = [None] * count
        self._steps: dict[int, Row | list[torch.Tensor]] = {}
        self._words: dict[int, list[list[torch.Tensor]]] = {}
        """The same memory of those places that were refilled, as `guards.words` has it."""
        for step, shape in shapes.items():
            row = guards.row(count, *shape)
            self._steps[step] = row or [guards.empty(*shape, filled=False) for _ in range(count)]

    def __len__(self) -> int:
        return len(self._made)

    def __getitem__(self, place: Any) -> Any:
        made = self._made[place]
        if made is None:
            made = {step: one.tensor(place) if isinstance(one, Row) else one[place] for step, one in self._steps.items()}
            self._made[place] = made
        return made

    def refill(self, place: int) -> None:
        """Write another value all over the memory of a place."""
        if place not in self._words:
            self._words[place] = [words(tensor) for tensor in self[place].values()]
        for parts in self._words[place]:
            fill(parts, secrets.randbits(62))
