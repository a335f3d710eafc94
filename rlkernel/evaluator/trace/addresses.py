"""Addresses of tensors, as host code compares them: keys of caches, checks for alignment and for shared memory.

They are made up: each memory has its own, aligned as torch aligns. Inputs have the same ones in every call, as torch's allocator
gives them, so that a result that is remembered by an address is found again and seen to be old. In the end they move, as inputs
that are kept do, so that who relies on an address without a look at it is seen, too. Nothing may go there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

FIRST = 1 << 44
FIRST_INPUT = 1 << 45
ALIGNMENT = 512
ELSEWHERE = 1 << 44


class Address(int):
    """What `Tensor.data_ptr()` gives."""


class Addresses:
    """The addresses of one trace. Whoever asks keeps the tensors' memory alive."""

    def __init__(self) -> None:
        self._of: dict[int, int] = {}
        """Storage -> its address."""
        self._next = FIRST
        self._next_input = FIRST_INPUT
        self.asked = False
        """Whether host code has asked for an address."""

    def move(self) -> None:
        """The inputs of all later calls lie elsewhere."""
        self._next_input += ELSEWHERE

    def inputs(self, storages: Sequence[int], sizes: Sequence[int]) -> None:
        """A call of forward begins with inputs in these storages, of so many bytes."""
        at = self._next_input
        for storage, size in zip(storages, sizes, strict=True):
            if storage not in self._of:
                self._of[storage] = at
            at += _aligned(size)

    def of(self, tensor: torch.Tensor) -> Address:
        self.asked = True
        with torch._C.DisableTorchFunction():
            storage = tensor.untyped_storage()
            if storage._cdata not in self._of:
                self._of[storage._cdata] = self._next
                self._next += _aligned(storage.nbytes())
            return Address(self._of[storage._cdata] + tensor.storage_offset() * tensor.element_size())


def _aligned(size: int) -> int:
    return -(-max(1, size) // ALIGNMENT) * ALIGNMENT


def has_addresses(value: Any) -> bool:
    """Whether a number, or a list of numbers, holds an address."""
    if isinstance(value, (list, tuple)):
        return any(has_addresses(item) for item in value)
    return isinstance(value, Address)
