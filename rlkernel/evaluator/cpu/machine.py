"""A kernel's memory while it is interpreted: addresses are checked and counted, what the language leaves undefined is random.

Two uses: for real (small shapes, correctness), and dry (full shapes, no memory behind the addresses: loads give zeros).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import triton.language as tl
from triton._C.libtriton import ir
from triton.runtime import interpreter as triton_interpreter
from triton.runtime.interpreter import InterpreterOptions, TensorHandle

from rlkernel.evaluator.cpu import kinds
from rlkernel.evaluator.cpu.arithmetic import SIMPLE, SLOW, Arithmetic
from rlkernel.evaluator.cpu.extents import Extents
from rlkernel.evaluator.cpu.fetching import L2
from rlkernel.evaluator.cpu.known import KnownMemory
from rlkernel.evaluator.cpu.latency import Chain, deepest
from rlkernel.evaluator.cpu.limits import Limits
from rlkernel.evaluator.cpu.loaded import is_known, is_loaded, know, mark, marks_results
from rlkernel.evaluator.cpu.neighbours import FalseNeighbours, GoneBy, Hint
from rlkernel.evaluator.cpu.numbers import Array, is_bits, narrow, widen
from rlkernel.evaluator.cpu.pace import Pace, counts_operations
from rlkernel.evaluator.cpu.races import Races
from rlkernel.evaluator.cpu.reuse import SECTOR, Reuse
from rlkernel.evaluator.draws import draws, key_of
from rlkernel.evaluator.judging.costs.counts import ELSEWHERE, HANDED_ON

_WATCHED = InterpreterOptions(sanitize_overflow=True)
_UNWATCHED = replace(_WATCHED, sanitize_overflow=False)
_FLOAT_ADD = ir.ATOMIC_OP.FADD
_ACQUIRES = (ir.MEM_SEMANTIC.ACQUIRE, ir.MEM_SEMANTIC.ACQUIRE_RELEASE)
_RELEASES = (ir.MEM_SEMANTIC.RELEASE, ir.MEM_SEMANTIC.ACQUIRE_RELEASE)
_Part = tuple[int, Array, Any]
"""A storage in address order, the addresses of an access that lie in it, and which of the access's elements these are."""


class OutOfBounds(Exception):
    """A launch reads or writes outside the tensors that it was given."""


@counts_operations
@marks_results
class Machine(Arithmetic):
    """Triton's interpreter with checked memory and counters."""

    accesses = 0
    """Reads of memory, while launches are priced."""
    wrote = tried = False
    """Whether a program has written, and whether it has come to a store at all, while launches are priced."""
    left_out = False
    """Whether a mask of this launch has left elements out."""
    undecided = False
    """Whether memory decided a branch of this launch, so that what was followed may never run."""
    told = False
    """Whether memory tells how many turns a loop of this launch has, while launches are priced."""
    shortens = False
    """Whether long loops are shortened, while launches are priced."""
    last_turn = False
    """Whether the turn of such a loop runs that stands for others, with the last one's number."""
    pace: Pace | None = None
    """What counts the work, where too much of it is given up."""

    def leave_open(self) -> None:
        """Note that memory decides a branch."""
        self.undecided = True

    def __init__(self) -> None:
        super().__init__()
        self.extents = Extents()
        self.limits = Limits()
        self.hints_on_memory: set[tuple[str, int]] = set()
        """Functions and lines of the hints about values that memory decides, as far as launches were priced."""
        self.false_neighbours: dict[Hint, FalseNeighbours] = {}
        """The false hints of the running program, each kind of a line once, while launches are priced; with data those that loads
        went by then."""
        self._hints: dict[int, dict[Hint, FalseNeighbours]] = {}
        """Program -> its `false_neighbours`, where programs have data and may take turns."""
        self.gone_by = GoneBy()
        self.kinds = kinds.Kinds()
        self.known = KnownMemory({})
        self.reuse = Reuse()
        self.chain = Chain()
        self._missing: dict[int, int] = {}
        """Program -> the most elements that masks of its loads left out, where programs have data and may take turns."""
        self._moved: dict[int, float] = {}
        """Place of a storage -> the bytes that the last access to it has moved, while launches are priced."""
        self._starts = np.zeros(0, dtype=np.uint64)
        self._ends = np.zeros(0, dtype=np.uint64)
        self._order: list[int] = []
        self._races: Races | None = None
        self._compared: set[int] = set()
        """The words that the running program has compared by atomics, while launches are priced: locks, perhaps."""
        self.draw_from(key_of(None))

    def draw_from(self, key: str) -> None:
        """From now on, take from this key what the language leaves undefined, and which programs and turns are followed."""
        self._undefined_values = np.random.default_rng(draws(key, "undefined").getrandbits(128))
        self.order = draws(key, "order").getrandbits(64)
        self.programs, self.drawn_turns = draws(key, "programs"), draws(key, "turns of loops")
        self._key = key
        self.begin_round(0)

    def begin_round(self, number: int) -> None:
        """From now on programs take turns as in this round, so that a race that shows in few orders meets several."""
        self.turns = draws(self._key, f"turns {number}").getrandbits(64)

    def map(self, extents: Sequence[tuple[int, int]], *, dry: bool) -> None:
        """Addresses that a launch may touch: (start, end) per storage, in the order of its arguments."""
        self.dry, self.makes_pointers = dry, False
        self._hints.clear()
        self._missing.clear()
        # Assertions watch integers for overflow. They are not compiled in, so they only count in a price.
        self.options = _WATCHED if dry else _UNWATCHED
        self._order = sorted(range(len(extents)), key=lambda i: extents[i][0])
        self._starts = np.array([extents[i][0] for i in self._order], dtype=np.uint64)
        self._ends = np.array([extents[i][1] for i in self._order], dtype=np.uint64)
        self._races = None if dry else Races([extents[i] for i in self._order])

    def enter(self, program: int) -> None:
        """From now on, the program of this number in the order of the grid runs, for the first time or again."""
        self._compared.clear()
        self._program, self.last_turn = program, False
        self.false_neighbours = {} if self.dry else self._hints.setdefault(program, {})
        width, height, _ = self.grid_dim
        self.set_grid_idx(program % width, program // width % height, program // width // height)
        if self._races is not None:
            self._races.enter(program)

    def leave(self) -> None:
        """The program that runs has ended."""
        self._hints.pop(self._program, None)
        self._missing.pop(self._program, None)
        if self._races is not None:
            self._races.leave()
        if self.pace is not None and not self.dry:
            self.pace.ended()

    def followed(self, name: str, method: Callable[..., Any], args: Any, kwargs: dict[str, Any], made: Any) -> Any:
        """What one of the methods made, with what it would have made in other programs."""
        return kinds.followed(self, name, method, args, kwargs, made)

    def create_get_program_id(self, axis: int) -> Any:
        made = super().create_get_program_id(axis)
        return kinds.carrying(made, self.kinds.program_id(axis)) if self.dry else made

    def _account(self, ptrs: Any, masks: Any, width: int, *, write: bool, atomic: bool = False) -> list[_Part]:
        """Check the addresses under a mask, and count their bytes while launches are priced. An atomic reads what it writes.
        Raises OutOfBounds."""
        pointers, mask = ptrs.data, masks.data
        inside = kinds.others(masks) if self.dry and self.kinds.count > 1 else None
        unknown = self.dry and is_loaded([ptrs, masks])
        if unknown:
            self._count_most(pointers, mask, width, reads=atomic or not write)
        elif inside is not None:
            self.kinds.reach(inside, kinds.parts(masks) if write else (), write=write)
        self.tried |= write
        shape = np.broadcast_shapes(pointers.shape, mask.shape)
        pointers, mask = np.broadcast_to(pointers, shape), np.broadcast_to(mask, shape).astype(bool, copy=False)
        for (line, _), hint in self.false_neighbours.items() if self.dry else ():
            strays = self.gone_by.note(line, hint, pointers, mask | unknown, width)
            if strays.size and write:
                raise OutOfBounds(self.gone_by.full[line])
            self._by_storage(strays, width, "reads", made_up=unknown)
        addresses = pointers[mask]
        verb = "writes" if write else "reads"
        parts = self._by_storage(addresses, width, verb, made_up=unknown)
        if self.makes_pointers and addresses.size and not unknown and int(np.bitwise_or.reduce(addresses)) & (width - 1):
            raise OutOfBounds(f"program {self.grid_idx} {verb} elements at addresses that are no multiple of their size")
        self.wrote |= write and (unknown or addresses.size > 0)
        missing = math.prod(shape) - addresses.size
        self.left_out |= (unknown and not self.last_turn) or missing > 0
        if not self.dry:
            self._note_undone(missing, write=write)
        for place, mine, _ in parts if self.dry else ():
            storage = self._order[place]
            self._moved[place] = float(mine.size * width)
            if not unknown:
                sectors = np.unique(mine // np.uint64(SECTOR))
                self._moved[place] = moved = float(sectors.size * SECTOR)
                self.reuse.touch(storage, sectors, moved)
                reads = atomic or not write
                self.counts.move(storage, moved, self.kinds.share_apart(ptrs, masks, storage, sectors) if reads else 0.0)
            if write:
                self.known.forget(storage)
            if write and not unknown:
                self.counts.store(storage, mine.size * width, (math.prod(shape) - addresses.size) * width)
        if write and unknown and addresses.size and len(self._starts):
            storage = self._aimed_at(addresses, parts)
            self.counts.store(storage, addresses.size * width, (math.prod(shape) - addresses.size) * width)
        return parts

    def _note_undone(self, missing: int, *, write: bool) -> None:
        """An access leaves so many elements out. A store that leaves out fewer than the loads did writes what stands for these,
        and whoever reads that puts it together with others."""
        most = self._missing.get(self._program, 0)
        if not write:
            self._missing[self._program] = max(most, missing)
        elif missing < most:
            self.meet()

    def _aimed_at(self, addresses: Array, parts: list[_Part]) -> int:
        """The storage that a store means whose addresses memory decides: where most of the made-up ones lie, or the nearest one.
        The real ones lie in it, all of them."""
        if parts:
            return self._order[max(parts, key=lambda part: int(part[1].size))[0]]
        bounds = np.concatenate([self._starts, self._ends]).astype(np.float64)
        return self._order[int(np.argmin(np.abs(bounds - float(addresses[0])))) % len(self._starts)]

    def _by_storage(self, addresses: Array, width: int, verb: str, *, made_up: bool = False) -> list[_Part]:
        """Addresses that are `made_up`, because memory decides them, say nothing where they lie outside. Raises OutOfBounds."""
        if addresses.size == 0:
            return []
        last = self._ends - np.uint64(width)
        if len(last):  # nearly always, all of them lie in one
            first = int(np.searchsorted(self._starts, addresses.min(), side="right")) - 1
            if first >= 0 and addresses.max() <= last[first]:
                return [(first, addresses, slice(None))]
        place = np.searchsorted(self._starts, addresses, side="right") - 1
        inside = (place >= 0) & (len(last) > 0)
        if len(last):
            inside &= addresses <= last[np.maximum(place, 0)]
        if not inside.all() and not made_up:
            raise OutOfBounds(f"program {self.grid_idx} {verb} {int((~inside).sum())} elements outside the tensors it was given")
        return [(int(i), addresses[mine], mine) for i in np.unique(place[inside]) for mine in [(place == i) & inside]]

    def _count_most(self, pointers: Array, mask: Array, width: int, *, reads: bool) -> None:
        """Count the bytes of an access whose addresses or mask come from memory as if none were left out or met twice, those
        that lie outside all tensors too: they are made up, and the real ones move as much."""
        shape = np.broadcast_shapes(pointers.shape, mask.shape)
        addresses = np.broadcast_to(pointers, shape).reshape(-1)
        place = np.searchsorted(self._starts, addresses, side="right") - 1
        if len(self._ends):
            place[addresses >= self._ends[np.maximum(place, 0)]] = ELSEWHERE
        for index in np.unique(place):
            mine = addresses[place == index]
            storage = ELSEWHERE if index == ELSEWHERE else self._order[int(index)]
            moved = max(SECTOR * np.unique(mine // np.uint64(SECTOR)).size, mine.size * width)
            self.reuse.touch(storage, None, float(moved))
            self.counts.move(storage, float(moved), float(reads))

    def create_ptr_to_int(self, pointer: Any, kind: Any) -> Any:
        """While launches are priced addresses are made up, and a kernel that looked at them would know that. They count as values
        from memory, which nobody knows."""
        made = super().create_ptr_to_int(pointer, kind)
        return mark(made) if self.dry else made

    def create_assume(self, condition: Any) -> None:
        """A hint that is checked at full shape, where the compiler uses it."""
        if self.dry and not is_loaded(condition) and not np.all(condition.data):
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

    def _known(self, ptrs: Any, mask: Any, other: Any, parts: list[_Part], dtype: np.dtype[Any]) -> Any:
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
        return know(TensorHandle(data, ptrs.get_element_ty()))

    def _loaded(self, parts: list[_Part], depth: float) -> float:
        """The depth of what a load gives whose addresses have this depth."""
        found = [depth]
        for place, mine, _ in parts:
            size = int(self._ends[place] - self._starts[place])
            found.append(self.chain.load(self._order[place], size, mine, self._moved.get(place, 0.0), depth))
        return max(found)

    def _undefined(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        count = int(np.prod(shape, dtype=np.int64))
        if dtype == np.bool_:
            return self._undefined_values.integers(0, 2, size=shape).astype(bool)
        return np.frombuffer(self._undefined_values.bytes(count * dtype.itemsize), dtype=dtype).reshape(shape)

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

    def _stored(self, parts: list[_Part], depth: float) -> None:
        """Something of this depth is stored, in part outside all tensors where memory decides the addresses."""
        for place, addresses, _ in parts:
            self.chain.store(self._order[place], addresses, depth)
        if not parts:
            self.chain.store(ELSEWHERE, np.zeros(0, dtype=np.uint64), depth)

    def create_gather(self, src: Any, indices: Any, axis: Any) -> Any:
        """The language leaves open what lies beside a block; numpy would take negative places from its end."""
        size = src.data.shape[axis]
        if not (self.dry and is_loaded(indices)) and bool(((indices.data < 0) | (indices.data >= size)).any()):
            raise OutOfBounds(f"program {self.grid_idx} gathers elements outside a block's {size}")
        return super().create_gather(src, indices, axis)

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
