"""How much of each input and parameter a forward reads at full shape, at most: while its launches are priced.

A candidate that is right where results are compared may leave something out at full shape alone: `row % 64`, a block of 2,048 of
4,096 columns, a loop that is cut. Where the reference needs a tensor to the last element (`judging.costs.least_read`), most of it
must be read; so must be what kernels write for later ones, such as the sums of 4,096 programs of which one block of 1,024 is
added up, if the reference hides nothing by its place. What several programs read by one access counts once, if they begin and end
at the same addresses; where memory decides addresses, all are taken for others. Who leaves a part alone at the smaller size, too,
and is right there, needs no more. Source: ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from rlkernel.evaluator.judging.costs.counts import ELSEWHERE, Counts
from rlkernel.evaluator.judging.costs.operator_costs import dense_bytes
from rlkernel.evaluator.messages.judgement import Reads, Unread

READ = 0.95
"""Share that must be read of what the reference needs whole, where all of it is read at the size that is compared. Of the red
team's honest kernels, none reads less than 99.9 %."""
OF_SAMPLED = 0.8
"""The same where programs differ in how much they read, so that those that were followed may read less than others: of kernels
whose loops end where whole numbers of the inputs say; and the share of what is written that must be read."""
NEARLY_ALL = 0.98
"""Share of a tensor that counts as all of it there."""


@dataclass(frozen=True, slots=True)
class Shares:
    """The share of memory that a forward reads at most."""

    inputs: tuple[float, ...] = ()
    """The share of each input."""
    state: Mapping[str, float] = field(default_factory=dict)
    """The share of each parameter and buffer."""
    made: Mapping[int, float] = field(default_factory=dict)
    """The share of what is written into the memory that a step makes, by the step."""

    def unread(self, reads: Reads, small: Callable[[], Shares], least: float = READ) -> Unread:
        """What of the reference's needs, or of what was written, is left alone in part. `small`: the
        same at the size at which results are compared, which is asked for where it may say that the candidate needs no more
        there, either. least: the share that must be read."""
        given = enumerate(zip(self.inputs, reads.inputs, strict=False))  # there are no reads where nothing is claimed
        places = [place for place, (share, size) in given if size and share < least]
        names = [name for name, size in reads.parameters.items() if size and self.state.get(name, 1.0) < least]
        made = [step for step, share in self.made.items() if reads.made and share < OF_SAMPLED]
        if not places and not names and not made:
            return Unread.NOTHING
        there = small()
        if any(there.inputs[place] >= NEARLY_ALL for place in places):
            return Unread.INPUT
        if any(there.state.get(name, 0.0) >= NEARLY_ALL for name in names):
            return Unread.PARAMETER
        wrote = any(there.made.get(step, 0.0) >= NEARLY_ALL for step in made)
        return Unread.MADE if wrote else Unread.NOTHING


class Reached:
    """How much of each memory the steps of one forward read, at most, and how much they write."""

    def __init__(self) -> None:
        self._read: dict[int, float] = {}
        self._written: dict[int, float] = {}
        self._anywhere = 0.0
        self._makers: dict[int, tuple[int, float]] = {}
        """Memory that a step has made -> the step, and the bytes of the memory."""
        self._made: dict[int, float] = {}

    def of_kernel(self, counts: Counts) -> None:
        """Count a launch."""
        for place, read in counts.apart.items():
            if place == ELSEWHERE:
                self._anywhere += read
            else:
                _add(self._read, counts.storages[place], read)
        for place, written in counts.stored.items():
            _add(self._written, counts.storages[place], written)

    def of_operator(
        self, index: int, read: Sequence[torch.Tensor], made: Sequence[torch.Tensor], *, works: bool
    ) -> None:  # fmt: skip
        """Count an operator, which may read all of its arguments. New memory may have the identity of some that was given up."""
        before = {tensor.untyped_storage()._cdata for tensor in read}
        fresh = {tensor.untyped_storage()._cdata: float(tensor.untyped_storage().nbytes()) for tensor in made}
        for storage, size in fresh.items():
            if storage not in before:
                self._end(storage)
                self._makers[storage] = index, size
        for tensor in read if works else ():
            _add(self._read, tensor.untyped_storage()._cdata, math.inf)
        for tensor in made if works else ():
            _add(self._written, tensor.untyped_storage()._cdata, float(dense_bytes(tensor)))

    def _end(self, storage: int) -> None:
        """Memory is given up, or forward has ended."""
        read, written = self._read.pop(storage, 0.0), self._written.pop(storage, 0.0)
        maker, size = self._makers.pop(storage, (-1, 0.0))
        if maker >= 0 and written:
            self._made[maker] = (read + self._anywhere) / min(size, written)  # what is added up is written several times

    def share(self, tensor: torch.Tensor) -> float:
        """The share of a tensor that is read."""
        storage = tensor.untyped_storage()
        return (self._read.get(storage._cdata, 0.0) + self._anywhere) / max(1, storage.nbytes())

    def shares(
        self, inputs: Sequence[torch.Tensor], state: Mapping[str, torch.Tensor], outputs: Sequence[torch.Tensor] = ()
    ) -> Shares:
        """What was read once forward has ended. What it returns, and no kernel is known to read, is for none of them: a load
        whose address memory decides, as that of a turn that stands for others, may be from anywhere."""
        for storage in {tensor.untyped_storage()._cdata for tensor in outputs}:
            if not self._read.get(storage):
                self._makers.pop(storage, None)
        found = tuple(map(self.share, inputs)), {name: self.share(tensor) for name, tensor in state.items()}
        for storage in [*self._makers]:
            self._end(storage)
        return Shares(*found, dict(self._made))


def _add(counts: dict[int, float], storage: int, more: float) -> None:
    counts[storage] = counts.get(storage, 0.0) + more
