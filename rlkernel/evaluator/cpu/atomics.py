"""Atomics while a kernel is interpreted: they change words, wait for one another, and hand locks on."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton.language as tl
from triton._C.libtriton import ir
from triton.runtime import interpreter as triton_interpreter
from triton.runtime.interpreter import TensorHandle

from rlkernel.evaluator.cpu.arithmetic import SIMPLE, SLOW
from rlkernel.evaluator.cpu.fetching import L2
from rlkernel.evaluator.cpu.latency import deepest
from rlkernel.evaluator.cpu.loaded import is_loaded
from rlkernel.evaluator.cpu.memory import Memory
from rlkernel.evaluator.cpu.numbers import is_bits, narrow, widen
from rlkernel.evaluator.judging.costs.counts import HANDED_ON

_FLOAT_ADD = ir.ATOMIC_OP.FADD
_ACQUIRES = (ir.MEM_SEMANTIC.ACQUIRE, ir.MEM_SEMANTIC.ACQUIRE_RELEASE)
_RELEASES = (ir.MEM_SEMANTIC.RELEASE, ir.MEM_SEMANTIC.ACQUIRE_RELEASE)


class Atomics(Memory):
    """Triton's interpreter with checked memory and the atomics of a GPU."""

    def create_atomic_rmw(self, op: Any, ptr: Any, val: Any, mask: Any, sem: Any, scope: Any) -> Any:
        self._work(val.data, val.dtype, SLOW)
        self._change(ptr, mask, val, sem)
        if self.dry:
            self.accesses += 1
            made = TensorHandle(np.zeros_like(val.data), val.dtype.scalar)
            made.depth = deepest([ptr, val, mask]) + L2
            return made
        kind = val.dtype.scalar
        if op == _FLOAT_ADD and is_bits(kind):
            return self._add_bits(ptr, val, mask)
        if op == ir.ATOMIC_OP.XCHG and kind.is_floating():  # of bits: the interpreter exchanges integers
            size = val.data.itemsize
            bits = TensorHandle(val.data.view(f"i{size}"), tl.dtype(f"int{8 * size}"))
            old = super().create_atomic_rmw(op, ptr, bits, mask, sem, scope)
            return TensorHandle(old.data.view(val.data.dtype), kind)
        return super().create_atomic_rmw(op, ptr, val, mask, sem, scope)

    def _change(self, ptr: Any, mask: Any, val: Any, sem: Any) -> None:
        """A program changes words by an atomic. Raises OutOfBounds, Race."""
        width = max(1, val.dtype.primitive_bitwidth // 8)
        parts = self._account(ptr, mask, width, write=True, atomic=True)
        single = ptr.data.size == 1  # of a block, also one with a single lane left, each thread orders its own accesses alone
        acquires, releases = single and sem in _ACQUIRES, single and sem in _RELEASES
        if self.dry:
            self._stored(parts, deepest([ptr, mask, val]))
        if self.dry and not is_loaded([ptr, mask]):
            for _, addresses, _ in parts:
                lock = addresses.size == 1 and int(addresses[0]) in self._compared  # which is given up here
                self.counts.queue_up(addresses, HANDED_ON if lock else 1.0)
        elif self.dry and self._order:
            addresses = np.broadcast_to(ptr.data, np.broadcast_shapes(ptr.data.shape, mask.data.shape)).reshape(-1)
            self.counts.scatter(self._aimed_at(addresses, parts), addresses, width)
        if self._races is not None:
            for place, addresses, _ in parts:
                self._races.atomic(place, addresses, width, acquires=acquires, releases=releases)

    def _add_bits(self, ptr: Any, val: Any, mask: Any) -> Any:
        """An atomic addition in a format that numpy lacks, one element after the other."""
        shape = np.broadcast_shapes(ptr.data.shape, val.data.shape, mask.data.shape)
        pointers, values, chosen = (np.broadcast_to(h.data, shape).reshape(-1) for h in (ptr, val, mask))
        kind, dtype = val.dtype.scalar, val.data.dtype
        old = np.zeros(pointers.shape, dtype=dtype)
        for i in np.flatnonzero(chosen):
            one = slice(i, i + 1)
            here = np.ones(1, dtype=bool)
            before = triton_interpreter._interpreter.load(pointers[one].copy(), here, np.zeros(1, dtype=dtype), dtype)
            total = narrow(widen(before, kind) + widen(values[one], kind), kind)
            triton_interpreter._interpreter.store(pointers[one].copy(), total, here)
            old[i] = before[0]
        return TensorHandle(old.reshape(shape), kind)

    def create_atomic_cas(self, ptr: Any, cmp: Any, val: Any, sem: Any, scope: Any) -> Any:
        self._work(ptr.data, val.dtype, SIMPLE)
        everywhere = TensorHandle(np.ones_like(ptr.data, dtype=bool), tl.int1)
        self._change(ptr, everywhere, val, sem)
        if self.dry:
            self._compared.update(ptr.data.reshape(-1)[:1].tolist())
            self.accesses += 1
            made = TensorHandle(np.array(cmp.data, copy=True), cmp.dtype.scalar)
            made.depth = deepest([ptr, cmp, val]) + L2
            return made
        return super().create_atomic_cas(ptr, cmp, val, sem, scope)
