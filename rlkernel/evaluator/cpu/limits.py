"""Numbers that a kernel holds others against, which are the same at every size: `offs < 3000000`, `tl.minimum(cols, 16)`.

Where results are compared all places may lie below such a number, so that nobody sees what is done beyond it at full shape. What
each comparison and each minimum is given is noted at both sizes. Where one side is one number throughout, the same at both, and
the other side lies beyond it at full shape alone, the number is made smaller as that side is, and a forward is run once more: a
threshold between two ways to do the same changes nothing. What comes from memory is left alone, since nobody knows it at full
shape, and so are `==` and `!=`, which name one case and part no places. So is a number that a kernel also computes with: of
`min(rows - first, GROUP)`, beside which groups of GROUP rows are counted, one alone would make no sense. Source: ours.
"""

from __future__ import annotations

import ast
import math
import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import triton.language as tl
from triton.runtime.interpreter import TensorHandle

from rlkernel.evaluator.cpu.kinds import known_others
from rlkernel.evaluator.cpu.loaded import is_loaded

LEFT, RIGHT = 1, 2
Place = tuple[str, int, int]
"""The text of a kernel or of a function that it calls, the number of a comparison in it, and which of its sides may be another
number: one of them, or both."""
Moved = Mapping[Place, tuple[bool, float]]
"""Comparisons of which one side is another number: whether it is the left one, and which."""
_ORDER: dict[type[ast.cmpop], str] = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}
_EXTREMES = {"min", "max", "minimum", "maximum"}


@dataclass(frozen=True, slots=True)
class Span:
    """The least and the largest of some numbers."""

    low: float
    high: float

    def with_(self, other: Span) -> Span:
        return Span(min(self.low, other.low), max(self.high, other.high))


Sides = tuple[Span, Span]


class Machine(Protocol):
    """Where programs run."""

    dry: bool
    limits: Limits


class Limits:
    """What the comparisons of kernels were given at both sizes."""

    def __init__(self) -> None:
        self._full: dict[Place, Sides | None] = {}
        """None: of what memory decides."""
        self._small: dict[Place, Sides] = {}
        self.moved: Moved = {}

    def note(self, place: Place, left: Any, right: Any, *, dry: bool) -> None:
        """One comparison is made: while launches are priced, at full shape; else at the size at which results are compared, which
        is noted of those that are known at full shape."""
        if dry:
            before = self._full.get(place, ())
            if before is not None:
                sides = None if is_loaded([left, right]) else _sides(left, right, elsewhere=True)
                self._full[place] = _joined(before, sides)
        elif not self.moved and self._full.get(place) is not None:
            sides = _sides(left, right, elsewhere=False)
            if sides is not None:
                self._small[place] = _joined(self._small.get(place, ()), sides) or sides

    def hidden(self) -> Moved:
        """The comparisons whose one number decides at full shape as it never does at the smaller size, and what stands for it
        there."""
        found: dict[Place, tuple[bool, float]] = {}
        for place, full in self._full.items():
            small = self._small.get(place)
            if full is None or small is None:
                continue
            for side, (kept, other) in ((LEFT, (0, 1)), (RIGHT, (1, 0))):
                moved = _moved(full[kept], small[kept], full[other], small[other])
                if place[2] & side and moved is not None:
                    found[place] = side == LEFT, moved
        return found


def _joined(before: Sides | tuple[()], sides: Sides | None) -> Sides | None:
    if sides is None or not before:
        return sides
    return before[0].with_(sides[0]), before[1].with_(sides[1])


def _moved(full: Span, small: Span, other_full: Span, other_small: Span) -> float | None:
    """What stands at the smaller size for a number that others are held against; None where it decides there as it does at full
    shape, or is no fixed number."""
    number = full.low
    if not (full.high == number == small.low == small.high and math.isfinite(number)) or number <= 0:
        return None
    decides = other_full.low < number, other_full.high > number
    seen = other_small.low < number, other_small.high > number
    if all(now or not then for now, then in zip(seen, decides, strict=True)) or not 0 < other_small.high < other_full.high:
        return None
    smaller = number * other_small.high / other_full.high
    return smaller if number % 1 else math.floor(smaller)


def _sides(left: Any, right: Any, *, elsewhere: bool) -> Sides | None:
    one, other = _span(left, elsewhere), _span(right, elsewhere)
    return None if one is None or other is None else (one, other)


def _span(value: Any, elsewhere: bool) -> Span | None:
    """The numbers that a value holds, in the programs `elsewhere`, too; None of what is no number."""
    value = value.value if isinstance(value, tl.constexpr) else value
    if isinstance(value, tl.tensor):
        handle = value.handle
        if not isinstance(handle, TensorHandle) or handle.dtype.scalar.is_ptr() or not handle.data.size:
            return None
        span = Span(float(handle.data.min()), float(handle.data.max()))
        others = known_others(handle) if elsewhere else None
        return span if others is None else span.with_(Span(float(others.min()), float(others.max())))
    return Span(float(value), float(value)) if isinstance(value, (int, float)) and abs(value) < 1e300 else None


def _instead(value: Any, number: float) -> Any:
    """The number in place of a value, of its kind."""
    value = value.value if isinstance(value, tl.constexpr) else value
    if isinstance(value, tl.tensor):
        return tl.tensor(TensorHandle(np.full_like(value.handle.data, number), value.handle.dtype), value.type)
    return type(value)(number)


def alone(tree: ast.FunctionDef) -> set[str]:
    """The numbers and variables that a kernel's text holds others against and uses for nothing else."""
    every = Counter(_name(node) for node in ast.walk(tree))
    compared = Counter(_name(side) for node in ast.walk(tree) for side in _sides_of(node))
    return {name for name, count in compared.items() if name is not None and count == every[name]}


def held(tree: ast.FunctionDef, source: str, names: AbstractSet[str]) -> ast.FunctionDef:
    """A kernel's tree that says what it holds against these numbers and variables."""
    made = _Held(source, names).visit(tree)
    assert isinstance(made, ast.FunctionDef)
    return made


def _name(node: ast.AST) -> str | None:
    """What tells a number of a text, or a variable that is read, from others."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return repr(node.value)
    return node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) else None


def _sides_of(node: ast.AST) -> list[ast.expr]:
    """The two sides of a comparison by order, of a minimum or a maximum; none of anything else."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _ORDER:
        return [node.left, node.comparators[0]]
    if isinstance(node, ast.Call) and len(node.args) == 2 and not node.keywords:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else _name(node.func)
        return node.args if name in _EXTREMES and not any(isinstance(one, ast.Starred) for one in node.args) else []
    return []


class _Held(ast.NodeTransformer):
    """Lets comparisons with numbers of these names say what they are given."""

    def __init__(self, source: str, names: AbstractSet[str]) -> None:
        self._source, self._names, self._count = source, names, 0

    def _said(self, node: ast.Compare | ast.Call, function: ast.expr, sides: Sequence[ast.expr]) -> ast.expr:
        which = sum(side for side, one in zip((LEFT, RIGHT), sides, strict=False) if _name(one) in self._names)
        self._count += 1
        self.generic_visit(node)
        if not which:
            return node
        place = ast.Tuple([ast.Constant(one) for one in (self._source, self._count, which)], ast.Load())
        given = [node.left, node.comparators[0]] if isinstance(node, ast.Compare) else node.args
        return ast.copy_location(ast.Call(ast.Name(".held", ast.Load()), [place, function, *given], []), node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        sides = _sides_of(node)
        order = ast.Name(f".{_ORDER.get(type(node.ops[0]), '')}", ast.Load())
        return self._said(node, order, sides) if sides else self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        sides = _sides_of(node)
        return self._said(node, node.func, sides) if sides else self.generic_visit(node)


def words(machine: Machine) -> dict[str, Any]:
    """What the names mean that `held` writes."""

    def held(place: Place, function: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
        limits = machine.limits
        limits.note(place, left, right, dry=machine.dry)
        if not machine.dry and place in limits.moved:
            is_left, number = limits.moved[place]
            left, right = (_instead(left, number), right) if is_left else (left, _instead(right, number))
        return function(left, right)

    return {".held": held, **{f".{name}": getattr(operator, name) for name in _ORDER.values()}}
