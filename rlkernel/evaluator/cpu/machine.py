"""The machine that interprets a kernel: its loads, stores and hints, and random values where the language leaves them undefined.

While launches are priced, loads give zeros, or what is known of the inputs' whole numbers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton._C.libtriton import ir
from triton.runtime import interpreter as triton_interpreter
from triton.runtime.interpreter import TensorHandle

from rlkernel.evaluator.cpu import edges, kinds
from rlkernel.evaluator.cpu.atomics import Atomics
from rlkernel.evaluator.cpu.latency import deepest
from rlkernel.evaluator.cpu.loaded import is_known, is_loaded, know, mark, marks_results
from rlkernel.evaluator.cpu.memory import OutOfBounds, Part
from rlkernel.evaluator.cpu.numbers import Array
from rlkernel.evaluator.cpu.pace import counts_operations


@counts_operations
@marks_results
class Machine(Atomics):
    """Triton's interpreter with checked memory and counters."""

    def followed(self, name: str, method: Callable[..., Any], args: Any, kwargs: dict[str, Any], made: Any) -> Any:
        """What one of the methods made, with what it would have made in other programs."""
        return kinds.followed(self, name, method, args, kwargs, made)

    def create_get_program_id(self, axis: int) -> Any:
        made = super().create_get_program_id(axis)
        return kinds.carrying(made, self.kinds.program_id(axis)) if self.dry else made

    def create_ptr_to_int(self, pointer: Any, kind: Any) -> Any:
        """While launches are priced addresses are made up, and a kernel that looked at them would know that. They count as values
        from memory, which nobody knows."""
        made = super().create_ptr_to_int(pointer, kind)
        return mark(made) if self.dry else made

    def create_assume(self, condition: Any) -> None:
        """A hint that is checked at full shape, where the compiler uses it, in all programs that do as the followed one does."""
        elsewhere = kinds.others(condition) if self.dry and self.kinds.count > 1 else None
        holds = np.all(condition.data) and (elsewhere is None or self.kinds.in_all(elsewhere))
        if self.dry and not is_loaded(condition) and not holds:
            raise OutOfBounds("tl.assume says what does not hold at full shape: accesses may go anywhere")

    def create_load(self, ptr: Any, _0: Any, _1: Any, is_volatile: Any) -> Any:
        mask = TensorHandle(np.ones_like(ptr.data, dtype=bool), tl.int1)
        zeros = np.zeros_like(ptr.data, dtype=triton_interpreter._get_np_dtype(ptr.get_element_ty()))
        return self.create_masked_load(ptr, mask, TensorHandle(zeros, ptr.get_element_ty()), _0, _1, is_volatile)

    def create_masked_load(
        self, ptrs: Any, mask: Any, other: Any, cache_modifier: Any, eviction_policy: Any, is_volatile: Any
    ) -> Any:
        """Elements outside the mask without `other` are undefined by the language: random bytes."""
        kind = ptrs.get_element_ty()
        width = max(1, kind.primitive_bitwidth // 8)
        parts = self._account(ptrs, mask, width, write=False)
        dtype = triton_interpreter._get_np_dtype(kind)
        if self.dry:
            self.accesses += 1
            made = self._known(ptrs, mask, other, parts, dtype)
            made = TensorHandle(np.zeros_like(ptrs.data, dtype=dtype), kind) if made is None else made  # a zero is false
            made.depth = self._loaded(parts, deepest([ptrs, mask]))
            self.counts.flops += self.chain.fetching.slots(ptrs.data.size)
            return made
        assert self._races is not None
        for place, addresses, _ in parts:
            self._races.read(place, addresses, width, volatile=bool(is_volatile))
        if other is None:
            other = TensorHandle(self._undefined(ptrs.data.shape, dtype), kind)
        made = super().create_masked_load(ptrs, mask, other, cache_modifier, eviction_policy, is_volatile)
        if self.false_neighbours:
            strays = self.gone_by.strays(self.false_neighbours, ptrs.data, np.broadcast_to(mask.data, ptrs.data.shape), width)
            made.data = np.where(strays, self._undefined(ptrs.data.shape, dtype), made.data)
        return made

    def _known(self, ptrs: Any, mask: Any, other: Any, parts: list[Part], dtype: np.dtype[Any]) -> Any:
        """What a load gives while launches are priced; None where nobody knows."""
        if not self.known or len(parts) != 1 or not is_known([ptrs, mask, other]):
            return None
        inside = np.broadcast_to(mask.data, ptrs.data.shape).astype(bool)
        place = parts[0][0]
        values = self.known.load(self._order[place], ptrs.data[inside] - self._starts[place], dtype)
        if values is None or (other is None and not inside.all()):
            return None
        data = np.zeros_like(ptrs.data, dtype=dtype)
        if other is not None:
            data[...] = np.broadcast_to(other.data, data.shape)
        data[inside] = values
        made = know(TensorHandle(data, ptrs.get_element_ty()))
        return kinds.carrying_later(made, self, Machine._known, ptrs, mask, other, parts, dtype) if data.size == 1 else made

    def create_make_block_ptr(self, base: Any, shape: Any, strides: Any, offsets: Any, block_shape: Any, order: Any) -> Any:
        """A block pointer, whose offsets are in the other programs what they were."""
        made = super().create_make_block_ptr(base, shape, strides, offsets, block_shape, order)
        made.offsets = edges.kept(offsets, [offset.data for offset in made.offsets])
        return made

    def create_advance(self, ptr: Any, offsets: Any) -> Any:
        """The same, further on. Both may depend on the program."""
        made = super().create_advance(ptr, offsets)
        moved = zip(ptr.offsets, offsets, made.offsets, strict=True)
        made.offsets = [kinds.followed(self, "advance", Machine._advanced, (at, by), {}, there) for at, by, there in moved]
        return made

    def _advanced(self, offset: Any, by: Any) -> Any:
        """An offset of a block pointer, further on."""
        return TensorHandle((offset.data + by.data).astype(offset.data.dtype), offset.dtype)

    def create_tensor_pointer_load(
        self, ptr: Any, boundary_check: Any, padding_option: Any, cache_modifier: Any, eviction_policy: Any, is_volatile: Any
    ) -> Any:
        """Through a block pointer. Without padding option, elements beyond the edge are zero on a GPU, and kernels rely on it."""
        if padding_option is None:
            padding_option = ir.PADDING_OPTION.PAD_ZERO
        return super().create_tensor_pointer_load(
            ptr, boundary_check, padding_option, cache_modifier, eviction_policy, is_volatile
        )

    def create_masked_store(self, ptrs: Any, value: Any, mask: Any, cache_modifier: Any, eviction_policy: Any) -> Any:
        width = max(1, ptrs.get_element_ty().primitive_bitwidth // 8)
        parts = self._account(ptrs, mask, width, write=True)
        if self.dry:
            self._stored(parts, deepest([ptrs, value, mask]))
            return None
        assert self._races is not None

        def values(chosen: Any) -> Array:
            shape = np.broadcast_shapes(ptrs.data.shape, mask.data.shape)
            return np.asarray(np.broadcast_to(value.data, shape)[np.broadcast_to(mask.data, shape).astype(bool)][chosen])

        for place, addresses, chosen in parts:
            self._races.write(place, addresses, width, functools.partial(values, chosen))
        super().create_masked_store(ptrs, value, mask, cache_modifier, eviction_policy)
        for _, addresses, chosen in parts:
            self._races.stored(addresses, functools.partial(values, chosen))

    def create_gather(self, src: Any, indices: Any, axis: Any) -> Any:
        """The language leaves open what lies beside a block; numpy would take negative places from its end."""
        size = src.data.shape[axis]
        if not (self.dry and is_loaded(indices)) and bool(((indices.data < 0) | (indices.data >= size)).any()):
            raise OutOfBounds(f"program {self.grid_idx} gathers elements outside a block's {size}")
        return super().create_gather(src, indices, axis)
