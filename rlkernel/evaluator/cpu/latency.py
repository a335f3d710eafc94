"""How long the operations of a program wait for one another: while a launch is priced.

Every value has a depth: the cycles until it can be there, the largest depth of what it is made of and its operation's latency. A
program takes at least as long as the deepest value that it stores, however few bytes it moves. What depends on nothing but
addresses may be fetched ahead: a loop that sums what it loads is deeper by an addition in each turn, not by a load.

Example: `for t in range(T): h = tanh(tl.load(x + t) + tl.sum(h[:, None] * w, 0))` waits in each turn for a product, a sum across
threads and a tanh, some 250 cycles, and T turns of it one after the other.

A thread's latencies, in cycles, are those of microbenchmarks of Volta, Ampere and Hopper, the lowest of them: Jia et al.
(arXiv:1804.06826), Abdelkhalik et al. (arXiv:2208.11174), Luo et al. (arXiv:2402.13499, 2501.12084), and for matrix units Sun et
al. (TPDS 2023). A multiplication that an addition follows is one operation with it. What a block's elements take to be issued
counts in place of a latency that is shorter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime.interpreter import BlockPointerHandle, TensorDescHandle, TensorHandle

from rlkernel.evaluator.cpu import scaled_products
from rlkernel.evaluator.cpu.fetching import L1, L2, Fetching, Turns

Array = np.ndarray[Any, Any]

PLAIN = 4.0
"""An addition, a multiplication, both at once, a comparison or a choice."""
SPECIAL = 18.0
"""A special function, such as 2 to a power, or a division."""
LEVEL = 23.0 + PLAIN
"""A step of a reduction among the threads of a warp: a shuffle, and what combines two values."""
SHARED = 60.0
"""A way through shared memory: a store of 19 cycles, a barrier of about as many, and a load of 23."""
PRODUCT = {8: 1.0, 16: 2.0, 32: 4.0}
"""A step along a product's inner dimension by the operands' bits: 33 cycles for 16 steps of half precision."""
LANES, SPECIAL_LANES, UNITS = 32, 4, 4
"""Operations that a quarter of a processor begins in a cycle, special ones among them, and the quarters."""
REMEMBERED = 16
"""Stores into a storage of which a program knows where they went."""

_FUSED = {"create_fmul", "create_mul"}
_ADDS = {"create_fadd", "create_fsub", "create_add", "create_sub"}
_SPECIAL = {
    f"create_{name}"
    for name in (
        "fdiv", "precise_divf", "frem", "exp", "exp2", "log", "log2", "cos", "sin", "sqrt", "precise_sqrt", "rsqrt", "erf",
        "extern_elementwise",
    )
}  # fmt: skip
_FREE = {
    f"create_{name}"
    for name in (
        "get_program_id", "get_num_programs", "load", "masked_load", "tensor_pointer_load", "descriptor_load", "store",
        "masked_store", "tensor_pointer_store", "descriptor_store", "descriptor_gather", "descriptor_scatter", "atomic_rmw",
        "atomic_cas", "si_to_fp", "ui_to_fp", "fp_to_si", "fp_to_ui", "fp_ext", "fp_trunc", "fp_to_fp", "int_cast", "bitcast",
        "int_to_ptr", "ptr_to_int", "reshape", "trans", "make_range", "expand_dims", "broadcast", "cat", "join", "split", "splat",
        "unsplat", "print", "assert", "assume", "barrier", "make_block_ptr", "advance", "make_tensor_descriptor",
    )
}  # fmt: skip
"""Operations without a latency of their own, or with one that is counted elsewhere."""


def handles(value: Any) -> Iterator[TensorHandle]:
    """The handles of a tensor, or of what is made of tensors."""
    if isinstance(value, TensorHandle):
        yield value
    elif isinstance(value, tl.tensor):
        yield from handles(value.handle)
    elif isinstance(value, (list, tuple, tl.core.tuple)):
        for part in value:
            yield from handles(part)
    elif isinstance(value, (BlockPointerHandle, TensorDescHandle)):
        for part in vars(value).values():
            yield from handles(part)


def deepest(values: Iterable[Any]) -> float:
    """The largest depth among operands."""
    depth = 0.0
    for value in values:
        if type(value) is TensorHandle:
            mine: float = value.__dict__.get("depth", 0.0)
        elif isinstance(value, (list, tuple, tl.tensor, tl.core.tuple, BlockPointerHandle, TensorDescHandle)):
            mine = max((one.__dict__.get("depth", 0.0) for one in handles(value)), default=0.0)
        else:
            continue
        depth = max(depth, mine)
    return depth


def keep(made: Any, of: Any) -> Any:
    """A handle that is a copy of another one, as deep as that."""
    for name in ("depth", "unfused", "along"):
        if name in of.__dict__:
            made.__dict__[name] = of.__dict__[name]
    return made


def at_least(made: Any, other: Any) -> Any:
    """A value that is there no earlier than another one: which of them it is, memory decides."""
    depth = deepest([other])
    for handle in handles(made):
        handle.__dict__["depth"] = max(depth, handle.__dict__.get("depth", 0.0))
    return made


def _across(shape: Sequence[int], axis: int, warps: int) -> float:
    """The latency of a reduction over an axis of a block whose last axis is dealt out to threads first, four neighbours to each
    if there are so many: combinations within a thread, among the threads of a warp, and among warps through shared memory."""
    each = min(4, max(1, math.prod(shape) // (32 * warps)))
    lanes, left = 32, warps
    for dim in reversed(range(len(shape))):
        size = shape[dim] if dim < len(shape) - 1 else max(1, shape[dim] // each)
        mine = min(lanes, size)
        among = min(left, size // mine)
        lanes, left = lanes // mine, left // among
        if dim == axis:
            inside = math.log2(max(1, shape[dim] // (mine * among)))
            return PLAIN * inside + LEVEL * math.log2(mine) + (2 * SHARED + LEVEL * math.log2(among) if among > 1 else 0.0)
    return 0.0


def reduction(shape: Sequence[int], axis: int | None, warps: int) -> float:
    """The latency of a reduction or scan, whichever axis is dealt out first.

    >>> reduction((32,), 0, 4), reduction((64, 64), 0, 4)  # 5 steps in a warp; 8 in each thread, 2 in a warp, 4 warps
    (135.0, 116.0)
    """
    if axis is None or len(shape) == 1:
        return _across((math.prod(shape),), 0, warps)
    axis %= len(shape)
    return min(_across(shape, axis, warps), _across(tuple(reversed(shape)), len(shape) - 1 - axis, warps))


class Chain:
    """What one program at a time waits for."""

    def __init__(self, warps: int = 4, fetching: Fetching | None = None) -> None:
        self.warps = warps
        self.fetching = fetching or Fetching()
        self.begin()

    def begin(self) -> None:
        """Another program begins."""
        self._ready = 0.0
        """Before this nothing can be loaded, because the program has waited for others, or for what earlier turns load."""
        self._issued = 0.0
        """When what was followed last is issued at the earliest: a program issues in order, and waits for operands."""
        self.fetching.begin()
        self._stored: dict[int, float] = {}
        self._where: dict[int, list[tuple[Array, float]]] = {}
        self._turns: list[tuple[dict[int, float], float]] = []

    @property
    def depth(self) -> float:
        """The cycles until all is stored that has been."""
        return max(self._stored.values(), default=0.0)

    def begin_loop(self, turns: Turns) -> None:
        """A loop begins."""
        self.fetching.loops.append(turns)

    def next_turn(self, loop: Turns) -> None:
        """Another turn of a loop begins: not before all of the last one is issued."""
        self._ready = max(self._ready, self._issued)
        loop.begun += 1
        if loop.begun == 1:
            loop.began = self._ready
        elif loop.begun == 2:
            self.fetching.first_ends(loop, self._ready - loop.began)

    def end_loop(self, loop: Turns) -> None:
        """A loop has ended, and those inside of it that were left by a `return`."""
        while self.fetching.loops and self.fetching.loops.pop() is not loop:
            pass
        self._ready = max(self._ready, self._issued)

    def store(self, storage: int, addresses: Array, depth: float) -> None:
        """Something of this depth is stored."""
        self._issued = max(self._issued, depth)
        self._stored[storage] = max(depth, self._stored.get(storage, 0.0))
        where = self._where.setdefault(storage, [])
        where.append((addresses, depth))
        del where[:-REMEMBERED]

    def load(self, storage: int, size: int, addresses: Array, moved: float, depth: float) -> float:
        """The depth of what is loaded at addresses of this depth from a storage of so many bytes, of which so many are moved.
        What the program itself has stored there is in the cache of its processor, after as long as a load takes."""
        own = max((d for stored, d in self._where.get(storage, ()) if _meet(addresses, stored)), default=0.0)
        there = max(depth, self._ready)
        self._issued = max(self._issued, depth)
        if own:
            return max(there + L1, own + 2 * L1)
        return self.fetching.load(storage, size, addresses, moved, there)

    def wait(self, depth: float) -> None:
        """The program waits for others, which wait for what it has stored before: an atomic and a load of the word."""
        self._ready = max(self._ready, depth, self.depth + 2 * L2)

    def begin_turn(self) -> None:
        """A turn of a loop begins that stands for others."""
        self._turns.append((dict(self._stored), max(self._ready, self._issued)))

    def end_turn(self, times: int) -> None:
        """The turn that began last has ended, and stands for so many: what it has stored is deeper by so much, each time."""
        stored, ready = self._turns.pop()
        self._issued = max(self._issued, self._ready)
        self._issued += (times - 1) * (self._issued - ready)
        self._ready = self._issued
        for storage, depth in self._stored.items():
            before = stored.get(storage, depth)
            more = (times - 1) * (depth - before)
            self._stored[storage] += more
            self._where[storage] = [(place, d + more if d > before else d) for place, d in self._where[storage]]

    def deepen(self, name: str, args: Sequence[Any], kwargs: dict[str, Any], made: Any) -> None:
        """Note how deep it is what the machine's method of this name made."""
        operands = (*args, *kwargs.values()) if kwargs else args
        depth = deepest(operands)
        if type(made) is not TensorHandle:
            if depth and isinstance(made, (list, tuple)):
                at_least(made, operands)
            return
        given = made.__dict__
        along = next((one.__dict__["along"] for one in args if type(one) is TensorHandle and "along" in one.__dict__), None)
        if name in _FREE:
            if name == "create_expand_dims" and along is not None and along != args[1]:
                depth += SHARED  # what lies along one axis of a block is brought along another
            else:
                given.setdefault("along", along) if along is not None else None
            given["depth"] = max(depth, given.get("depth", 0.0))
            return
        if along is not None:
            given["along"] = along
        self._issued = max(self._issued, depth)
        if name in _ADDS:
            depth = max(
                (o.__dict__.get("unfused", o.__dict__.get("depth", 0.0)) for o in args if type(o) is TensorHandle), default=depth
            )
        elif name in _FUSED:
            given["unfused"] = depth
        given["depth"] = depth + self._own(name, args, made)

    def _own(self, name: str, args: Sequence[Any], made: TensorHandle) -> float:
        """The latency of an operation, or what its elements take to begin."""
        if name == "create_dot":
            bits = args[0].dtype.scalar.primitive_bitwidth
            exact = bits == 64 or (bits == 32 and "ieee" in str(args[3]).lower())
            self.fetching.product(not exact and self.warps >= 4 and args[0].data.shape[-2] >= 64)
            return float(args[0].data.shape[-1]) * (PLAIN if exact else PRODUCT.get(bits, 1.0))
        if name == "create_dot_scaled":
            self.fetching.product(self.warps >= 4 and made.data.shape[-2] >= 64)
            return scaled_products.length(args[0], args[2].name, bool(args[7])) * PRODUCT[16]
        if name == "create_addptr" or made.dtype.is_ptr():
            return PLAIN
        units = min(UNITS, self.warps)
        if name in _SPECIAL:
            return max(SPECIAL, float(made.data.size) / (SPECIAL_LANES * units))
        return max(PLAIN, float(made.data.size) / (LANES * units))

    def reduced(self, values: Any, axis: Any, made: Any) -> None:
        """Note how deep it is what a reduction or scan of these values made."""
        given = list(handles(values))
        axis = getattr(axis, "value", axis)
        for loop in self.fetching.loops:
            loop.reduces = True
        before = deepest(given)
        self._issued = max(self._issued, before)
        depth = before + reduction(given[0].data.shape, axis, self.warps)
        for handle in handles(made):
            handle.__dict__["depth"] = depth
            if axis is not None and handle.data.ndim == 1 and given[0].data.ndim == 2:  # a number of all is one of size 1
                handle.__dict__["along"] = axis % 2


def _meet(first: Array, second: Array) -> bool:
    """Whether two accesses touch the same addresses."""
    if not first.size or not second.size or first.max() < second.min() or second.max() < first.min():
        return False
    return bool(np.intersect1d(first, second).size)
