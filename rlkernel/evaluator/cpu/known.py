"""Memory whose whole numbers are known while a launch is priced, see `judging.costs.known`.

What is loaded of it, and what is computed of that alone, still counts as a value from memory (`loaded.is_known`): both
sides of branches are followed, and masked accesses count whole. But a loop may go as far as such a number says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rlkernel.evaluator.cpu.numbers import Array


class KnownMemory:
    """The storages of one launch whose numbers are known, until it writes into them."""

    def __init__(self, data: Mapping[int, bytes]) -> None:
        """data: what lies in a storage, by its place among those of the launch."""
        self._data = {place: np.frombuffer(held, dtype=np.uint8) for place, held in data.items()}

    def __bool__(self) -> bool:
        return bool(self._data)

    def forget(self, place: int) -> None:
        """A launch writes into this storage."""
        self._data.pop(place, None)

    def load(self, place: int, offsets: Array, dtype: np.dtype[Any]) -> Array | None:
        """The elements at these offsets, in bytes, of a storage; None where nobody knows them."""
        held = self._data.get(place)
        if held is None or offsets.size == 0 or int(offsets.max()) + dtype.itemsize > held.size:
            return None
        whole = offsets.astype(np.int64)[:, None] + np.arange(dtype.itemsize)
        return np.ascontiguousarray(held[whole]).view(dtype).reshape(-1)
