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
IN_A_TENSOR = "a tensor of addresses cannot be traced; give the kernel the tensors themselves"


class Address(int):
    """What `Tensor.data_ptr()` gives, and what host code makes of it: a number of which no more is known than its remainder.

    torch aligns memory to `ALIGNMENT` bytes, so that an address is known modulo that. What depends on more raises Untraceable.
    Example: `% 16` says how an access is aligned, and `(at + 15) // 16 * 16` is a multiple of 16; `% 4096` would say where the
    allocator happened to put a tensor.
    """

    modulus: int
    """What remains on division by this is known."""

    def __new__(cls, value: int, modulus: int = ALIGNMENT) -> Address:
        made = super().__new__(cls, value)
        made.modulus = modulus
        return made

    def __mod__(self, other: int) -> int:
        _known(other == 0 or (not isinstance(other, Address) and self.modulus % other == 0))
        return int(self) % other

    def __floordiv__(self, other: int) -> int:
        _known(other == 0 or (not isinstance(other, Address) and self.modulus % other == 0))
        return Address(int(self) // other, self.modulus // abs(other))

    def __divmod__(self, other: int) -> tuple[int, int]:
        return self // other, self % other

    def __and__(self, other: int) -> int:
        """What is left of the known bits, or the address without some of them."""
        own = _bits(self)
        if 0 <= other < own:
            return int(self) & other
        _known(not isinstance(other, Address) and other | (own - 1) in (-1, ALL_BITS))
        return Address(int(self) & other, own)

    def __or__(self, other: int) -> int:
        return self._changed(int(self) | other, other)

    def __xor__(self, other: int) -> int:
        return self._changed(int(self) ^ other, other)

    def _changed(self, value: int, other: int) -> int:
        own = _bits(self)
        _known(0 <= other < own)
        return Address(value, own)

    def __add__(self, other: int) -> int:
        _known(not isinstance(other, Address))
        return Address(int(self) + other, self.modulus)

    def __sub__(self, other: int) -> int:
        return int(self) - int(other) if isinstance(other, Address) else Address(int(self) - other, self.modulus)

    def __rsub__(self, other: int) -> int:
        return Address(other - int(self), self.modulus)

    def __mul__(self, other: int) -> int:
        _known(not isinstance(other, Address))
        return Address(int(self) * other, self.modulus * abs(other)) if other else 0

    def __lshift__(self, other: int) -> int:
        return self * (1 << other)

    def __rshift__(self, other: int) -> int:
        return self // (1 << other)

    def __neg__(self) -> int:
        return Address(-int(self), self.modulus)

    def __invert__(self) -> int:
        return -self - 1

    def __pos__(self) -> int:
        return self

    __radd__, __rmul__, __rand__, __ror__, __rxor__ = __add__, __mul__, __and__, __or__, __xor__

    def _unknown(self, *others: object) -> int:
        _known(False)
        return 0

    __truediv__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rdivmod__ = _unknown  # type: ignore[assignment]
    __pow__ = __rpow__ = __rlshift__ = __rrshift__ = _unknown  # type: ignore[assignment]


ALL_BITS = (1 << 64) - 1


def _bits(address: Address) -> int:
    """The largest power of two that divides what an address is known modulo: so many of its last bits are known."""
    return address.modulus & -address.modulus


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

    def gave(self, value: int) -> bool:
        """Whether a number lies where an address that host code was given may lie: on its way through torch or numpy, an Address
        becomes a plain number."""
        return self.asked and (FIRST <= value < self._next or FIRST_INPUT <= value < self._next_input + ELSEWHERE)

    def of(self, tensor: torch.Tensor) -> Address:
        self.asked = True
        with torch._C.DisableTorchFunction():
            storage = tensor.untyped_storage()
            if storage._cdata not in self._of:
                self._of[storage._cdata] = self._next
                self._next += _aligned(storage.nbytes())
            return Address(self._of[storage._cdata] + int(tensor.storage_offset()) * tensor.element_size())


def _aligned(size: int) -> int:
    return -(-max(1, size) // ALIGNMENT) * ALIGNMENT


def has_addresses(value: Any) -> bool:
    """Whether a number, or a list of numbers, holds an address."""
    if isinstance(value, (list, tuple)):
        return any(has_addresses(item) for item in value)
    return isinstance(value, Address)
