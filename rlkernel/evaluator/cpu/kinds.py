"""What the other programs of a grid would decide where the one that is followed decides: while a launch is priced.

Every number that depends on `program_id` carries the numbers that other programs would have in its place, so that a comparison
says at once which of them go another way. Those are set apart and followed on their own: a single program of 100,000 that does
all of the work is found whatever its number, because its own comparison tells it from the rest.

Of a block two elements are carried for each program, its first and its last, which say how much of a mask is true. What comes
out of a block as a single number depends on more than these, and counts as a value from memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from triton.runtime.interpreter import TensorHandle

from rlkernel.evaluator.cpu.loaded import mark
from rlkernel.evaluator.cpu.reuse import SECTOR

Array = np.ndarray[Any, Any]

MOST_SORTED = 1 << 20
"""Addresses of other programs that are compared for one launch."""
_MIX = 0x9E3779B97F4A7C15
"""A factor that keeps pairs of addresses apart."""
_MOST_PARTS = 8
"""Masks that one is known to be the conjunction of."""
_MOST_LATER = 50
"""Operations on operations that are left for later."""
_MIXING = {f"create_{name}" for name in ("cat", "dot", "dot_scaled", "gather", "histogram", "join", "split")}
"""Operators whose result has other ends than the same operator would give the ends."""
_POINTERS = {f"create_{name}" for name in ("addptr", "splat", "broadcast", "expand_dims", "reshape", "trans")}
"""Operators whose pointers are known in other programs."""
_KEEP_ENDS = {f"create_{name}" for name in ("splat", "broadcast", "expand_dims", "reshape", "trans", "unsplat")}
"""Operators whose result has the first and the last element of its operand."""


class Kinds:
    """The programs that have decided all that the followed one has decided, and the sets of those that have not."""

    def __init__(self) -> None:
        self.replaying = False
        """Whether a method is called once more, for what it makes in the other programs."""
        self.begin()
        self.follow((1, 1, 1), np.zeros(1, dtype=np.int64), 0)

    def begin(self) -> None:
        """The programs of another launch are followed from now on."""
        self._sorted = 0

    def follow(self, grid: tuple[int, int, int], members: Array, index: int, *, exactly: bool = True) -> None:
        """From now on the program `members[index]` is followed for all of these programs of the grid. `exactly`: those that store
        less are set apart, too."""
        self._grid, self._members, self._index, self._exactly = grid, members, index, exactly
        self._alike = np.ones(members.shape, dtype=bool)
        self._touched: set[tuple[int, int, int, int]] = set()
        self._spanned = dict[tuple[int, int, int, int], float]()
        self._taken = np.zeros(members.shape)
        self.left: list[Array] = []
        """Sets of programs that have decided something else, each in its own way, in the order of the decisions."""

    @property
    def alike(self) -> Array:
        """The programs that have decided the same so far."""
        return self._members[self._alike]

    @property
    def count(self) -> int:
        """How many programs are looked at, with the followed one."""
        return int(self._members.size)

    def program_id(self, axis: int) -> Array:
        """The number of each program along an axis of the grid: (programs, 1)."""
        before, size = math.prod(self._grid[:axis]), self._grid[axis]
        return (self._members // before % size).astype(np.int32)[:, None]

    def decide(self, values: Array) -> None:
        """Whoever has another one of these values (programs, 1) than the followed program leaves it."""
        values = values.reshape(-1)
        self._leave(values, values != values[self._index])

    @property
    def taken(self) -> Array:
        """How many turns of loops each of these takes, of those loops whose turns are known in all programs."""
        return self._taken[self._alike]

    def take(self, counts: Array) -> None:
        """Programs take so many turns of a loop, which sets none of them apart: (programs,)."""
        self._taken += np.maximum(counts, 0)

    def turns(self, counts: Array) -> None:
        """Whoever takes half or twice as many turns of a loop leaves the followed program: (programs,). Where there are two
        lengths alone, as where work is dealt out evenly, all that take the other one leave it, so that both are counted."""
        self.take(counts)
        two = np.unique(counts[self._alike]).size <= 2
        kinds = counts if two else np.frexp(np.maximum(counts, 0).astype(np.float64))[1]
        self._leave(kinds, kinds != kinds[self._index])

    def reach(self, mask: Array, parts: Sequence[Array] = (), *, write: bool) -> None:
        """Whoever has more of an access's ends inside its mask leaves the followed program. So does, of a store, whoever has
        fewer, because what is stored in all is looked at: (programs, ends). `parts`: the masks that it is the conjunction of.
        A tile at the right edge and one at the lower edge have the same ends, and other parts."""
        if write and self._exactly:
            ends = np.stack([self._inside(part) for part in parts or [mask]])
            kinds = np.where(ends.all(axis=0), 3 ** np.arange(len(ends)) @ ends, 0)
            self._leave(kinds, kinds != kinds[self._index])
            return
        inside = self._inside(mask)
        self._leave(inside, inside > inside[self._index])

    def own(self, storage: int, elements: Array, sectors: Array, spanned: float) -> float:
        """The bytes that an access spans in its sectors and that the followed program has not touched before: at most. All of
        them where no other programs are looked at. Both arrays are in order."""
        if self.count == 1 or not elements.size:
            return spanned
        what = storage, int(elements[0]), int(elements[-1]), int(elements.size)
        if what in self._touched:
            return 0.0
        self._touched.add(what)
        there = storage, int(sectors[0]), int(sectors[-1]), int(sectors.size)
        before = self._spanned.get(there, 0.0)
        more = min(spanned, float(sectors.size * SECTOR) - before)  # taps beside one another touch the same sectors
        self._spanned[there] = before + more
        return more

    def share_apart(self, pointers: Any, mask: Any) -> float:
        """The share of the programs that decide alike that touches something of its own by an access: those that begin and end
        at the same addresses touch the same, if their masks leave out neither end. 1 where that is not known."""
        if self.count == 1:
            return 1.0
        if not vars(pointers).get("added", False):
            return 1.0
        ends, inside = others(pointers), others(mask)
        if (ends is None and varies(pointers)) or (inside is None and varies(mask)):
            return 1.0
        if ends is None:
            ends = np.zeros((self.count, 1), dtype=np.uint64)
        filled = self._alike.copy() if inside is None else self._alike & (inside.reshape(inside.shape[0], -1).all(axis=1))
        ends, alone = ends[filled], int(self._alike.sum() - filled.sum())
        if ends.shape[0] < 2 or bool((ends[1:, 0] > ends[:-1, 0]).all()):
            return 1.0
        self._sorted += ends.shape[0]
        if self._sorted > MOST_SORTED:
            return 1.0
        both = ends.astype(np.uint64) @ np.array([_MIX, 1], dtype=np.uint64)[-ends.shape[1] :]
        return float((np.unique(both).size + alone) / (both.size + alone))

    def in_all(self, values: Array) -> bool:
        """Whether these are true at both ends in all programs that have decided the same so far: (programs, ends)."""
        return bool(np.broadcast_to(values, (self.count, values.shape[-1]))[self._alike].all())

    def _inside(self, mask: Array) -> Array:
        """How many ends of a mask are true in each program: (programs,)."""
        return np.broadcast_to(mask.reshape(mask.shape[0], -1).sum(axis=1), self._members.shape)

    def _leave(self, values: Array, other: Array) -> None:
        other = other & self._alike
        if other.any():
            self._alike &= ~other
            self.left += [self._members[other & (values == value)] for value in np.unique(values[other])]


class _Later:
    """What a method makes of its operands in the other programs, computed when it is asked for: most of it never is."""

    def __init__(self, machine: Any, method: Callable[..., Any], args: Any, kwargs: dict[str, Any], ends: int) -> None:
        self._call = (machine, method, args, kwargs, ends)
        before = (vars(operand).get("others") for operand in _handles((args, tuple(kwargs.values()))))
        self.depth: int = 1 + max((one.depth for one in before if isinstance(one, _Later)), default=0)

    def data(self) -> Array | None:
        """None: the method's result has no row for each program."""
        machine, method, args, kwargs, ends = self._call
        counts = machine.counts
        counted, within = (counts.flops, counts.operations, counts.on_floats), machine.kinds.replaying
        machine.kinds.replaying = True
        try:
            given = {key: _ends(value, ends) for key, value in kwargs.items()}
            data = method(machine, *_ends(args, ends), **given).data
        except (AttributeError, IndexError, TypeError, ValueError):
            return None
        finally:
            counts.flops, counts.operations, counts.on_floats = counted
            machine.kinds.replaying = within
        return data if data.ndim == 2 and data.shape[0] == machine.kinds.count and data.shape[1] <= ends else None


def others(value: Any) -> Array | None:
    """What a number or a block is in the other programs, (programs, 1 or 2 ends); None: the same, or nobody knows. What nobody
    knows counts as a value from memory from now on, but for pointers."""
    if not isinstance(value, TensorHandle):
        return None
    late = isinstance(vars(value).get("others"), _Later)
    found = known_others(value)
    if late and found is None:
        value.others = None
        if not _is_pointer(value):
            mark(value)
    return found


def known_others(value: TensorHandle) -> Array | None:
    """The same, but that what nobody knows stays as it is."""
    found: Array | _Later | None = vars(value).get("others")
    if isinstance(found, _Later):
        data = found.data()
        if data is not None:
            value.others = data
        return data
    return found


def parts(mask: Any) -> list[Array]:
    """The masks that a mask is the conjunction of, in the other programs, as far as they are known; a few at most."""
    found = [others(part) for part in vars(mask).get("parts", ())]
    return [part for part in found if part is not None]


def _parts(name: str, operands: Sequence[TensorHandle]) -> list[TensorHandle]:
    """The masks that the result of a method is the conjunction of, beside itself where there are several."""
    if name not in _KEEP_ENDS and name != "create_and":
        return []
    found = [part for operand in operands if varies(operand) for part in vars(operand).get("parts") or [operand]]
    return found if len(found) <= _MOST_PARTS else []


def carrying(made: Any, data: Array | _Later) -> Any:
    """A handle, with what it is in the other programs."""
    made.others, made.varies = data, True
    return made


def carrying_later(made: Any, machine: Any, method: Callable[..., Any], *args: Any) -> Any:
    """A handle of one number, with what the machine's method makes of these operands in the other programs."""
    return carrying(made, _Later(machine, method, args, {}, 1)) if any(map(_may_vary, args)) else made


def _is_pointer(value: TensorHandle) -> bool:
    return bool(value.dtype.scalar.is_ptr())


def varies(value: Any) -> bool:
    """Whether a handle depends on which program runs."""
    return isinstance(value, TensorHandle) and "varies" in vars(value)


def _may_vary(operand: Any) -> bool:
    if isinstance(operand, (list, tuple)):
        return any(map(_may_vary, operand))
    return getattr(operand, "varies", False)


def _handles(values: Sequence[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _handles(value)
        elif isinstance(value, TensorHandle):
            yield value


def _ends(value: Any, count: int) -> Any:
    """An operand in every program: its ends alone, (programs or 1, count)."""
    if isinstance(value, (list, tuple)):
        return type(value)(_ends(part, count) for part in value)
    if not isinstance(value, TensorHandle):
        return value
    data = others(value)
    if data is None and varies(value) and _is_pointer(value):
        raise ValueError("nobody knows it")
    if data is None:  # alike in all programs
        flat = value.data.reshape(-1)
        data = flat[[0, -1]][None] if flat.size > 1 else flat[None]
    return TensorHandle(data, value.dtype)


def followed(machine: Any, name: str, method: Callable[..., Any], args: Any, kwargs: dict[str, Any], made: Any) -> Any:
    """What the machine's method of this name made of these operands, with what it would have made in the other programs."""
    cast = name == "create_bitcast" and _is_pointer(made)  # pointers to truth values become such to bytes
    if name == "create_addptr" or (cast and vars(args[0]).get("added", False)):  # what descriptors make of places, nobody follows
        made.added = True
    if not any(map(_may_vary, args)) and not any(map(_may_vary, kwargs.values())):
        return made
    operands = list(_handles((args, tuple(kwargs.values()))))
    lost = any(varies(operand) and vars(operand).get("others") is None for operand in operands)
    mixed = name in _MIXING or any(operand.data.size > 1 and varies(operand) for operand in operands)
    for result in _handles([made]):
        result.varies = True
        result.parts = _parts(name, operands)
        if _is_pointer(result) and (lost or not (cast or name in _POINTERS)):
            continue
        if lost or (mixed and (result.data.size == 1 or name in _MIXING)):
            mark(result)
        elif cast or name in _KEEP_ENDS:
            result.others = next(vars(operand)["others"] for operand in operands if varies(operand))
        else:
            result.others = _Later(machine, method, args, kwargs, 2 if result.data.size > 1 else 1)
            if result.others.depth > _MOST_LATER:
                others(result)
    return made
