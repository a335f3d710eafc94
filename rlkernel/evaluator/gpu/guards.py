"""The candidate's memory on the GPU, between red zones.

A red zone holds random bytes that are compared afterwards, so a write that strays by up to `ZONE` bytes is seen, or by fewer in a
call that makes thousands of tensors: all zones of one owner take `ZONES` bytes at most. The memory itself starts as random bytes
too. A view's storage covers the tensor alone: offsets mean what they mean without red zones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from rlkernel.evaluator.program.tensors import extent, overlapping

ZONE = 1 << 20
"""The number of bytes in the red zone before each tensor, and in the one after it."""
ZONES = 4 << 30
"""The most bytes that the red zones of one owner take together. With 2 MiB for each of the 28,000 results of a GRU of 6 layers
and 512 time steps they would take 56 GiB."""
TOGETHER = 16
"""How many pairs of red zones are looked at in one go."""
_ALIGN = 512
"""The unit, in bytes, in which guarded memory is allocated."""
ROW_BYTES = 320 << 20
"""The most memory that tensors of one kind get in one piece: those of all calls that are short enough for many places."""
CUDA = torch.device("cuda", 0)


def zone_of(tensors: int) -> int:
    """The bytes of a red zone where so many tensors may have two each."""
    return max(_ALIGN, min(ZONE, ZONES // (2 * max(tensors, 1)) // _ALIGN * _ALIGN))


def randomise(raw: torch.Tensor) -> None:
    """Overwrite a byte tensor with random bytes. The generator that the problem draws from is left alone."""
    whole = raw.numel() // 8 * 8
    raw[:whole].view(torch.int64).random_(generator=_generator())
    if whole < raw.numel():
        raw[whole:].random_(0, 256, generator=_generator())


_noise: torch.Generator | None = None


def _generator() -> torch.Generator:
    global _noise
    if _noise is None:
        _noise = torch.Generator(CUDA)
        _noise.seed()
    return _noise


def words(tensor: torch.Tensor) -> list[torch.Tensor]:
    """A tensor's storage as whole words of 64 bits, and the bytes behind these, as far as there are any."""
    storage = tensor.untyped_storage()
    whole = storage.nbytes() // 8 * 8
    if not storage.nbytes():
        return []
    raw = torch.empty(0, dtype=torch.uint8, device=CUDA).set_(storage)
    return [part for part in (raw[:whole].view(torch.int64), raw[whole:]) if part.numel()]


def fill(parts: Sequence[torch.Tensor], value: int) -> None:
    """Write a 64-bit value all over the `words` of a tensor, which is faster than random bytes."""
    for part in parts:
        part.fill_(value if part.dtype is torch.int64 else value & 0xFF)


@dataclass(frozen=True, slots=True)
class Row:
    """Memory for several tensors of one kind, each between red zones of its own. A tensor is made when it is asked for: of many
    places that calls may use, few are used."""

    address: int
    """The address of the first tensor."""
    pitch: int
    """Bytes from one tensor to the next."""
    nbytes: int
    size: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype

    def tensor(self, place: int) -> torch.Tensor:
        """The tensor at this place."""
        return _at(self.address + place * self.pitch, self.nbytes, self.size, self.stride, self.dtype)


def _at(address: int, nbytes: int, size: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """A tensor with a storage of its own, of so many bytes at this address."""
    storage = torch._C._construct_storage_from_data_pointer(address, CUDA, nbytes)
    return torch.empty(0, dtype=dtype, device=CUDA).set_(storage, 0, tuple(size), tuple(stride))


class Guards:
    """The owner of guarded memory. Tensors made here are void once their Guards is gone."""

    def __init__(self, tensors: int = 0) -> None:
        """tensors: how many it may come to own, if they are many."""
        self._zone = zone_of(tensors)
        self._pattern: torch.Tensor | None = None
        self._zones: list[torch.Tensor] = []
        self._rows: list[torch.Tensor] = []
        """The red zones of rows."""
        self._alive: list[torch.Tensor] = []

    def _red(self) -> torch.Tensor:
        """What red zones hold, drawn with the first one: many a candidate has no state to guard."""
        if self._pattern is None:
            self._pattern = torch.empty(self._zone, dtype=torch.uint8, device=CUDA)
            randomise(self._pattern)
        return self._pattern

    def empty(self, size: Sequence[int], stride: Sequence[int], dtype: torch.dtype, *, filled: bool = True) -> torch.Tensor:
        """Make a tensor like `torch.empty_strided`, with a storage of its own between red zones, and random if `filled`."""
        nbytes = extent(size, stride) * dtype.itemsize
        raw = torch.empty(2 * self._zone + nbytes + -nbytes % _ALIGN, dtype=torch.uint8, device=CUDA)
        zones = raw.as_strided((2, self._zone), (self._zone + nbytes, 1))  # before and after
        zones.copy_(self._red())
        self._zones.append(zones)
        body = raw[self._zone : self._zone + nbytes]
        if filled:
            randomise(body)
        self._alive.append(raw)
        return _at(body.data_ptr(), nbytes, size, stride, dtype)

    def row(self, count: int, size: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> Row | None:
        """Make memory for `count` such tensors at once, with whatever contents it has; None where that is too much in one
        piece."""
        nbytes = extent(size, stride) * dtype.itemsize
        pitch = 2 * self._zone + nbytes + -nbytes % _ALIGN
        if count * pitch > ROW_BYTES:
            return None
        raw = torch.empty(count * pitch, dtype=torch.uint8, device=CUDA)
        zones = raw.as_strided((count, 2, self._zone), (pitch, self._zone + nbytes, 1))
        zones.copy_(self._red())
        self._rows.append(zones)
        self._alive.append(raw)
        return Row(raw.data_ptr() + self._zone, pitch, nbytes, tuple(size), tuple(stride), dtype)

    def place(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a guarded copy of a tensor. Tensors that are empty or whose elements share memory stay where they are."""
        if tensor.numel() == 0 or any(s == 0 and n > 1 for n, s in zip(tensor.size(), tensor.stride(), strict=True)):
            return tensor
        gaps = extent(tensor.size(), tensor.stride()) != tensor.numel() or overlapping(tensor)  # which no copy reaches
        return self.empty(tensor.size(), tensor.stride(), tensor.dtype, filled=gaps).copy_(tensor)

    def release(self) -> None:
        """Give the memory back, so that every tensor made here is void."""
        self._zones.clear()
        self._rows.clear()
        self._alive.clear()

    @property
    def used(self) -> bool:
        """Whether any tensor was made here."""
        return bool(self._zones or self._rows)

    def broken(self) -> torch.Tensor:
        """Return a flag on the device that tells whether something was written into a red zone since it was made."""
        parts = [self._zones[first : first + TOGETHER] for first in range(0, len(self._zones), TOGETHER)]
        pattern = self._red()
        found = [(torch.stack(part) != pattern).any() for part in parts] + [(row != pattern).any() for row in self._rows]
        return found[0] if len(found) == 1 else torch.stack(found).any()
