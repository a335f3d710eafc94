"""Addresses of tensors, as host code compares them: keys of caches, checks for alignment and for shared memory.

They are made up: each memory has its own, aligned as torch aligns. Inputs have the same ones in every call, as torch's allocator
gives them, so that a result that is remembered by an address is found again and seen to be old. In the end they move, as inputs
that are kept do, so that who relies on an address without a look at it is seen, too. Nothing may go there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from rlkernel.evaluator.trace.host_numbers import Untraceable

FIRST = 1 << 44
FIRST_INPUT = 1 << 45
ALIGNMENT = 512
ELSEWHERE = 1 << 44


class Address(int):
    """What `Tensor.data_ptr()` gives, as a number whose lowest bits alone are known: torch aligns memory to `ALIGNMENT` bytes.

    What depends on more of them raises Untraceable. Example: `% 16` says how an access is aligned, `% 4096` where the allocator
    happened to put a tensor.
    """

    def __mod__(self, other: int) -> int:
        _known(ALIGNMENT % other == 0 if other else True)
        return int(self) % other

    def __and__(self, other: int) -> int:
        _known(0 <= other < ALIGNMENT)
        return int(self) & other

    __rand__ = __and__

    def __add__(self, other: int) -> Address:
        return Address(int(self) + other)

    __radd__ = __add__

    def __sub__(self, other: int) -> int:
        return int(self) - int(other) if isinstance(other, Address) else Address(int(self) - other)

    def _unknown(self, other: int) -> int:
        _known(False)
        return 0

    __floordiv__ = __rshift__ = __divmod__ = __truediv__ = __xor__ = _unknown  # type: ignore[assignment]


def _known(known: bool) -> None:
    if not known:
        raise Untraceable(
            f"host code computes with an address, of which nothing is known but that it is a multiple of {ALIGNMENT}: compare "
            "addresses, or ask for an alignment such as % 16"
        )


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
