"""Launches that are priced once, because they are alike: of a recurrent layer's thousands, a few are different.

A launch costs what another one has cost that has the same kernel, configuration and numbers, and whose tensors lie as those of
the other: in memory of the same sizes, in the same one where those do, and as far from one another. They may begin elsewhere, as
the rows of a sequence do that are taken one after the other: at the same remainder of what an allocator aligns to, and where what
was touched lies inside of the memory, too. A kernel does not see addresses. Where something is known of what lies in memory,
each launch is followed on its own. Source: ours.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from rlkernel.evaluator.devices import Room
from rlkernel.evaluator.judging.costs.counts import Counts
from rlkernel.evaluator.program.replay import tensors_in
from rlkernel.evaluator.program.schema import Config, Launch
from rlkernel.evaluator.program.values import Descriptor, ScalarRef

ALIGNED = 512
"""Bytes that an allocator aligns memory to: sectors and hints see no more of an address than its remainder."""
Touched = dict[int, tuple[int, int]]
"""Place of a storage in the order of a launch's arguments -> the first byte of it that was touched, and one after the last."""


@dataclass(frozen=True, slots=True)
class Lying:
    """How the tensors of one launch lie in memory."""

    storages: tuple[int, ...]
    """The identity of each storage, in the order of the arguments."""
    sizes: tuple[int, ...]
    begins: tuple[int, ...]
    """The byte of each storage at which its first tensor begins."""
    tensors: tuple[tuple[int, int, torch.dtype], ...]
    """A triple per tensor: the place of its storage, how far behind that byte it begins, and its dtype."""

    @classmethod
    def of(cls, tensors: Sequence[torch.Tensor]) -> Lying:
        """How these lie."""
        places: dict[int, int] = {}
        begins: list[int] = []
        sizes: list[int] = []
        found = []
        for tensor in tensors:
            storage, begin = tensor.untyped_storage(), int(tensor.storage_offset()) * tensor.element_size()
            place = places.setdefault(storage._cdata, len(places))
            if place == len(begins):
                begins.append(begin)
                sizes.append(storage.nbytes())
            found.append((place, begin - begins[place], tensor.dtype))
        return cls(tuple(places), tuple(sizes), tuple(begins), tuple(found))

    def holds(self, touched: Touched, other: Lying) -> bool:
        """Whether what was touched where tensors lay as in `other` lies inside of the memory here, too."""
        shifts = [here - there for here, there in zip(self.begins, other.begins, strict=True)]
        return all(
            low + shifts[place] >= 0 and high + shifts[place] <= self.sizes[place] for place, (low, high) in touched.items()
        )


@dataclass(frozen=True, slots=True)
class _Priced:
    us: float
    counts: Counts
    lying: Lying
    touched: Touched


class Alike:
    """What the launches of one forward have cost so far."""

    def __init__(self) -> None:
        self._priced: dict[Hashable, _Priced] = {}

    def pending(
        self, launch: Launch, config: Config, args: dict[str, Any], room: Room, known: Container[int]
    ) -> Pending:  # fmt: skip
        """This launch, which has no price yet. known: the memory of which something is known."""
        lying = Lying.of(tensors_in(args))
        if any(storage in known for storage in lying.storages):
            return Pending(self._priced, None, lying)
        aligned = tuple(begin % ALIGNED for begin in lying.begins)
        numbers = repr((config, [_number(name, value, launch) for name, value in args.items()]))
        return Pending(self._priced, (launch.function, numbers, room, lying.sizes, aligned, lying.tensors), lying)


@dataclass(frozen=True, slots=True)
class Pending:
    """One launch that is to be priced."""

    _priced: dict[Hashable, _Priced]
    _key: Hashable
    lying: Lying

    @property
    def found(self) -> tuple[float, Counts] | None:
        """The time and the counts of one that is alike; None where there was none yet."""
        before = self._priced.get(self._key) if self._key is not None else None
        if before is None or not self.lying.holds(before.touched, before.lying):
            return None
        return before.us, replace(before.counts, storages=[*self.lying.storages])

    def learn(self, us: float, counts: Counts, touched: Touched) -> None:
        """It was priced."""
        if self._key is not None:
            self._priced[self._key] = _Priced(us, counts, self.lying, dict(touched))


def _number(name: str, value: Any, launch: Launch) -> Any:
    """What a kernel sees of an argument besides where tensors lie."""
    if isinstance(value, torch.Tensor):
        return name
    if isinstance(value, Descriptor):
        return name, value.shape, value.strides, value.block_shape, value.padding
    return name, type(value).__name__, value, isinstance(launch.args.get(name), ScalarRef)
