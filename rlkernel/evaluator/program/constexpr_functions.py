"""Functions that Triton runs as Python while it compiles (`@triton.constexpr_function`): numbers in, a number out.

Their text is checked as a kernel's is, so that it can name nothing but Triton's language and the functions beside it. Unlike a
kernel's it really runs, and is therefore bounded by counting: turns of loops, calls, and the size of what is computed.

What a changed tree calls has names that begin with a dot, which no text can hold.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from typing import Any

import triton
import triton.language as tl

from rlkernel.evaluator.program.kernel_text import KernelRejected

MAX_TURNS = 100_000
"""Calls of one function and turns of its loops, while a Program is compiled or interpreted."""
MAX_BITS = 4096
"""Bits of an integer, and bytes of a string or items of a tuple, that may be computed while a kernel is compiled."""
_WITHOUT_BOUND = {"factorial", "comb", "perm", "prod", "fsum", "sumprod", "dist", "lcm", "hypot"}
"""Functions of `math` whose work has no bound, or that walk a sequence."""
_WALKING = ("sum", "min", "max")
_GROWING = {ast.Pow: "__pow__", ast.LShift: "__lshift__", ast.Mult: "__mul__", ast.Add: "__add__", ast.Mod: "__mod__"}


class TooMuch(Exception):
    """A function that runs while a kernel is compiled takes more than it may."""


def growth(method: str, left: Any, right: Any) -> int:
    """A bound on the bits or items of what an operator makes of two constants; 0 where it cannot be large."""
    if isinstance(left, int) and isinstance(right, int):
        bits = max(left.bit_length(), right.bit_length())
        if method == "__pow__":
            return left.bit_length() * max(right, 0) if abs(left) > 1 else 0
        if method == "__lshift__":
            return left.bit_length() + max(right, 0) if left else 0
        return left.bit_length() + right.bit_length() if method == "__mul__" else bits
    if method == "__mod__":
        return MAX_BITS + 1 if isinstance(left, (str, bytes)) else 0  # a format says how long it makes a text
    if method == "__mul__":
        for items, times in ((left, right), (right, left)):
            if isinstance(times, int) and hasattr(items, "__len__"):
                return len(items) * max(times, 0)
    return sum(len(part) for part in (left, right) if hasattr(part, "__len__"))


class Bounded(ast.NodeTransformer):
    """A function's tree that counts what it does."""

    def __init__(self, line: int) -> None:
        self._line = line

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.body.insert(0, ast.Expr(_call(".turn")))
        return node

    def _loop(self, node: Any) -> Any:
        self.generic_visit(node)
        node.body.insert(0, ast.Expr(_call(".turn")))
        return node

    visit_For = visit_While = _loop

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        self.generic_visit(node)
        node.elt = ast.Subscript(ast.Tuple([_call(".turn"), node.elt], ast.Load()), ast.Constant(1), ast.Load())
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return self._computed(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.target, ast.Name):
            raise KernelRejected("a constexpr function may not change a part of a value", self._line)
        value = self._computed(ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value))
        return ast.copy_location(ast.Assign([node.target], value), node)

    def _computed(self, node: ast.BinOp) -> ast.expr:
        method = _GROWING.get(type(node.op))
        return _call(".computed", ast.Constant(method), node.left, node.right) if method else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _WITHOUT_BOUND:
            raise KernelRejected(f"a constexpr function may not use {node.func.attr}", self._line)
        if isinstance(node.func, ast.Name) and node.func.id in _WALKING:
            node.args = [_call(".walked", arg) for arg in node.args]
        return node


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])


def words() -> dict[str, Any]:
    """What the names mean that `Bounded` writes, for one function and all of its calls."""
    turns = 0

    def turn() -> None:
        nonlocal turns
        turns += 1
        if turns > MAX_TURNS:
            raise TooMuch(f"a constexpr function takes more than {MAX_TURNS} turns")

    def computed(method: str, left: Any, right: Any) -> Any:
        if growth(method, left, right) > MAX_BITS:
            raise TooMuch(f"a constant of more than {MAX_BITS} bits or items")
        if method == "__pow__":
            return left**right
        if method == "__lshift__":
            return left << right
        if method == "__mod__":
            return left % right
        return left * right if method == "__mul__" else left + right

    def walked(value: Any) -> Any:
        if hasattr(value, "__len__") and len(value) > MAX_TURNS:
            raise TooMuch(f"a constexpr function walks more than {MAX_TURNS} items")
        return value

    return {".turn": turn, ".computed": computed, ".walked": walked}


def compiled(fn: Any) -> Any:
    """A function as Triton's compiler calls it."""
    return triton.constexpr_function(fn)


def interpreted(fn: Any) -> Callable[..., Any]:
    """A function as an interpreted kernel calls it: constants in, a plain value out, once for the same constants."""
    known = functools.cache(fn)

    def plain(value: Any) -> Any:
        if isinstance(value, (tuple, tl.core.tuple)):
            return tuple(plain(item) for item in value)
        if isinstance(value, tl.tensor):
            return value.handle.data.item()
        return value.value if isinstance(value, tl.constexpr) else value

    def call(*args: Any, **kwargs: Any) -> Any:
        return known(*map(plain, args), **{name: plain(value) for name, value in kwargs.items()})

    return call
