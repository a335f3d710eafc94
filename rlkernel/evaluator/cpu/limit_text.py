"""The text of a kernel that says what it holds against fixed numbers: `i < 300` becomes `.held(place, .lt, i, 300)` for `limits`.

Only numbers count that a text holds others against, and with which it computes nowhere else. Source: ours.
"""

from __future__ import annotations

import ast
import operator
from collections import Counter
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime.interpreter import TensorHandle

from rlkernel.evaluator.cpu.limits import BITS, EQUAL, LEFT, ORDER, PARTS, RIGHT, SHIFT, Machine, Place

Named = tuple[str, str | None]
"""A way to hold numbers against each other, and a number of a text or a variable that is held so."""
_KINDS: dict[type[ast.cmpop | ast.operator], tuple[str, str]] = {
    ast.Lt: ("lt", ORDER), ast.LtE: ("le", ORDER), ast.Gt: ("gt", ORDER), ast.GtE: ("ge", ORDER),
    ast.Eq: ("eq", EQUAL), ast.NotEq: ("ne", EQUAL),
    ast.RShift: ("rshift", SHIFT), ast.BitAnd: ("and_", BITS), ast.Mod: ("mod", PARTS), ast.FloorDiv: ("floordiv", PARTS),
}  # fmt: skip
"""What Python's operator is called, and how it tells numbers apart."""
_EXTREMES = {"min", "max", "minimum", "maximum"}


def _instead(value: Any, number: float) -> Any:
    """The number in place of a value, of its kind."""
    value = value.value if isinstance(value, tl.constexpr) else value
    if isinstance(value, tl.tensor):
        return tl.tensor(TensorHandle(np.full_like(value.handle.data, number), value.handle.dtype), value.type)
    return type(value)(number)


def alone(tree: ast.FunctionDef) -> AbstractSet[Named]:
    """The numbers and variables that a kernel's text holds others against in one way and uses for nothing else. What parts
    numbers is a number of the text: a variable may be a size that is the same at both, as the heads of `place // heads`. What
    takes a place apart and puts it together, as `>> 5` beside `& 31` or `// 32` beside `* 32`, is none; nor is the mask of a
    swizzle, as in `p ^ ((p >> 7) & 31)`."""
    every = Counter(_name(node) for node in ast.walk(tree))
    ways: Counter[Named] = Counter(
        (_way(node), name) for node in ast.walk(tree) for side in _sides_of(node)
        if (name := _name(side)) and (_way(node) == ORDER or isinstance(side, ast.Constant))
    )  # fmt: skip
    operators: dict[int, set[type[ast.operator]]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and (power := _power(node)):
            operators.setdefault(power, set()).add(type(node.op))
    swizzled = {id(node) for one in ast.walk(tree) if _way(one) == "xor" for node in ast.walk(one)}
    paired = {
        (_way(node), _name(node.right)) for node in ast.walk(tree)
        if isinstance(node, ast.BinOp) and (len(operators.get(_power(node) or 0, ())) > 1 or id(node) in swizzled)
    }  # fmt: skip
    return {(way, name) for (way, name), count in ways.items() if count == every[name] and (way, name) not in paired}


_PARTING = (ast.FloorDiv, ast.Mod, ast.Mult)
"""What takes a place apart by a number, and puts it together again."""


def _power(node: ast.AST) -> int | None:
    """The power of two by which a node takes places apart or puts them together: 5 for `>> 5`, `<< 5`, `& 31`, `// 32`, `% 32`
    and `* 32`; None where there is none."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.right, ast.Constant) and type(node.right.value) is int):
        return None
    number = node.right.value
    if isinstance(node.op, (ast.RShift, ast.LShift)):
        return number
    if isinstance(node.op, ast.BitAnd):
        number += 1
    elif not isinstance(node.op, _PARTING):
        return None
    return number.bit_length() - 1 if number > 1 and not number & (number - 1) else None


def _way(node: ast.AST) -> str:
    """How a node holds its sides against each other."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitXor):
        return "xor"
    if not isinstance(node, (ast.Compare, ast.BinOp)):
        return ORDER
    name, kind = _KINDS.get(type(node.ops[0] if isinstance(node, ast.Compare) else node.op), (ORDER, ORDER))
    return ORDER if kind == ORDER else name


def held(tree: ast.FunctionDef, source: str, names: AbstractSet[Named]) -> ast.FunctionDef:
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
    """The two sides of a comparison, of a minimum or a maximum, or of what parts numbers; none of anything else."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _KINDS:
        return [node.left, node.comparators[0]]
    if isinstance(node, ast.BinOp) and type(node.op) in _KINDS:
        return [node.left, node.right]
    if isinstance(node, ast.Call) and len(node.args) == 2 and not node.keywords:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else _name(node.func)
        return node.args if name in _EXTREMES and not any(map(_is_starred_or_guard, node.args)) else []
    return []


def _is_starred_or_guard(one: ast.expr) -> bool:
    """Whether an argument is several ones, or the whole one of a guard, as in `max(count, 1)`."""
    return isinstance(one, ast.Starred) or _name(one) == "1"


class _Held(ast.NodeTransformer):
    """Lets comparisons with numbers of these names say what they are given."""

    def __init__(self, source: str, names: AbstractSet[Named]) -> None:
        self._source, self._names, self._count = source, names, 0

    def _said(self, node: ast.Compare | ast.BinOp | ast.Call, by: tuple[ast.expr, str]) -> ast.expr:
        sides = _sides_of(node)
        which = sum(side for side, one in zip((LEFT, RIGHT), sides, strict=False) if (_way(node), _name(one)) in self._names)
        if by[1] in (SHIFT, PARTS):
            which &= RIGHT
        self._count += 1
        self.generic_visit(node)
        if not which:
            return node
        place = ast.Tuple([ast.Constant(one) for one in (self._source, self._count, which, by[1])], ast.Load())
        return ast.copy_location(ast.Call(ast.Name(".held", ast.Load()), [place, by[0], *_sides_of(node)], []), node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        return self._said(node, _by(node.ops[0])) if _sides_of(node) else self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        return self._said(node, _by(node.op)) if _sides_of(node) else self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        return self._said(node, (node.func, ORDER)) if _sides_of(node) else self.generic_visit(node)


def _by(operation: ast.cmpop | ast.operator) -> tuple[ast.expr, str]:
    """The word for an operator, and how it tells numbers apart."""
    name, kind = _KINDS[type(operation)]
    return ast.Name(f".{name}", ast.Load()), kind


def words(machine: Machine) -> dict[str, Any]:
    """What the names mean that `held` writes."""

    def held(place: Place, function: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
        limits = machine.limits
        limits.note(place, left, right, dry=machine.dry, known=machine.last_turn)
        if not machine.dry and place in limits.moved:
            is_left, number = limits.moved[place]
            left, right = (_instead(left, number), right) if is_left else (left, _instead(right, number))
        return function(left, right)

    return {".held": held, **{f".{name}": getattr(operator, name) for name, _ in _KINDS.values()}}
