"""How much of each input and parameter a forward touches at full shape, at most: while its launches are priced.

A candidate that is right where results are compared may leave something out at full shape alone: `row % 64`, a block of 2,048 of
4,096 columns, a loop that is cut. Where the reference needs a tensor to the last element (`judging.costs.least_read`), most of it
must be touched. What several programs touch by one access counts once, if they begin and end at the same addresses; where memory
decides addresses, all are taken for others. Who leaves a part alone at the smaller size, too, and is right there, needs no more.
Source: ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from rlkernel.evaluator.judging.costs.counts import ELSEWHERE, Counts
from rlkernel.evaluator.messages.judgement import Reads

READ = 0.8
"""Share that must be touched of what the reference needs whole, where all of it is touched at the size that is compared."""
NEARLY_ALL = 0.95
"""Share of a tensor that counts as all of it there."""


@dataclass(frozen=True, slots=True)
class Shares:
    """The share of each input, and of each parameter and buffer, that a forward touches at most."""

    inputs: tuple[float, ...] = ()
    state: Mapping[str, float] = field(default_factory=dict)

    def unread(self, reads: Reads, small: Callable[[], Shares]) -> bool:
        """Whether a part is left alone of what the reference needs whole. `small`: the same at the size at which results are
        compared, which is asked for where it may say that the candidate needs no more there, either."""
        given = enumerate(zip(self.inputs, reads.inputs, strict=False))  # there are no reads where nothing is claimed
        places = [place for place, (share, size) in given if size and share < READ]
        names = [name for name, size in reads.parameters.items() if size and self.state.get(name, 1.0) < READ]
        if not places and not names:
            return False
        there = small()
        return any(there.inputs[place] >= NEARLY_ALL for place in places) or any(
            there.state.get(name, 0.0) >= NEARLY_ALL for name in names
        )


class Reached:
    """How much of each memory the steps of one forward touch, at most."""

    def __init__(self) -> None:
        self._of: dict[int, float] = {}
        self._anywhere = 0.0

    def of_kernel(self, counts: Counts) -> None:
        """Count a launch."""
        for place, touched in counts.apart.items():
            if place == ELSEWHERE:
                self._anywhere += touched
            else:
                self._add(counts.storages[place], touched)

    def of_operator(self, read: Sequence[torch.Tensor], *, works: bool) -> None:
        """Count an operator, which may read all of its arguments."""
        for tensor in read if works else ():
            self._add(tensor.untyped_storage()._cdata, math.inf)

    def _add(self, storage: int, touched: float) -> None:
        self._of[storage] = self._of.get(storage, 0.0) + touched

    def share(self, tensor: torch.Tensor) -> float:
        """The share of a tensor that is touched."""
        storage = tensor.untyped_storage()
        return (self._of.get(storage._cdata, 0.0) + self._anywhere) / max(1, storage.nbytes())
