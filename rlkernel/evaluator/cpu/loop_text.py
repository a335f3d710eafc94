"""Loops in a kernel's tree become those of `loops`, which tell how many turns they have and hide what is unknown.

Example: `for k in range(n): acc += k` becomes `.loop_1 = .for(place, range(n))`, and `for k in .loop_1:` whose body begins with
`if .loop_1.unknown: acc = .loop_1.hidden("acc", acc)`.
"""

from __future__ import annotations

import ast
import copy
from typing import Any

from rlkernel.evaluator.cpu.extents import AXES

_SAME = {"num_programs", "cdiv", "minimum", "maximum"}
"""Functions of the language that always give the same of the same numbers."""


def _load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _counts(node: ast.While) -> list[ast.expr] | None:
    """What a `while` loop that counts compares by, its variable, its bound and its step; None for any other loop."""
    test = node.test
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.left, ast.Name)) or node.orelse:
        return None
    name, comparison, last = test.left.id, type(test.ops[0]).__name__, test.comparators[0]
    steps = [step for statement in node.body if (step := _added(statement, name)) is not None]
    stored = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    if len(steps) != 1 or stored.count(name) != 1:
        return None
    step = steps[0]
    plain = not any(_may_change(n) for part in (last, step) for n in ast.walk(part))
    used = {n.id for part in (last, step) for n in ast.walk(part) if isinstance(n, ast.Name)}
    if comparison not in ("Lt", "LtE", "Gt", "GtE") or not plain or used & set(stored):
        return None
    return [ast.Constant(comparison), _load(name), copy.deepcopy(last), copy.deepcopy(step)]


def _added(statement: ast.stmt, name: str) -> ast.expr | None:
    """What a statement adds to a variable: `k` of `i += k` and of `i = i + k`; None for any other."""
    match statement:
        case ast.AugAssign(target=ast.Name(id=target), op=ast.Add(), value=added) if target == name:
            return added
        case ast.Assign(targets=[ast.Name(id=target)], value=ast.BinOp(left=ast.Name(id=left), op=ast.Add(), right=added)) if (
            target == left == name
        ):
            return added
    return None


def _may_change(node: ast.AST) -> bool:
    """Whether what a node gives may be another value each time."""
    if isinstance(node, ast.Call):
        return not (isinstance(node.func, ast.Attribute) and node.func.attr in _SAME)
    return isinstance(node, ast.Subscript)


def _hidden(loop: str, names: list[str]) -> ast.stmt:
    """`if loop.unknown: name = loop.hidden("name", name)`, of each name that has a value."""
    body: list[ast.stmt] = []
    for name in names:
        hidden = ast.Attribute(_load(loop), "hidden", ast.Load())
        given = ast.Assign([ast.Name(name, ast.Store())], ast.Call(hidden, [ast.Constant(name), _load(name)], []))
        missing = ast.ExceptHandler(_load(".NameError"), None, [ast.Pass()])
        body.append(ast.Try([given], [missing], [], []))
    return ast.If(ast.Attribute(_load(loop), "unknown", ast.Load()), body, [])


class Loops(ast.NodeTransformer):
    """A kernel's tree, whose loops can be shortened. Names begin with a dot, as in `branches`."""

    _loops = 0

    def __init__(self, text: str) -> None:
        self._text = text
        """The function's text, by which its loops are known."""

    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        names = _stored(node.body)
        self.generic_visit(node)
        loop = self._name()
        made = ast.Call(_load(".for"), [self._place(), node.iter], [])
        node.iter = _load(loop)
        return self._around(node, loop, made, names)

    def visit_While(self, node: ast.While) -> Any:
        counted, names = _counts(node), _stored(node.body)
        if all(isinstance(part, ast.Pass) for part in node.body):  # a lock
            return super().visit_While(node)
        self.generic_visit(node)
        loop = self._name()
        node.test = ast.Call(ast.Attribute(_load(loop), "goes_on", ast.Load()), [node.test], [])
        return self._around(
            node, loop, ast.Call(_load(".while"), [self._place(), *(counted or [])], []), names if counted else []
        )

    def _place(self) -> ast.expr:
        """What the loop is known by that was named last."""
        return ast.Tuple([ast.Constant(self._text), ast.Constant(AXES - 1 + self._loops)], ast.Load())

    def _name(self) -> str:
        self._loops += 1
        return f".loop_{self._loops}"

    def _around(self, node: ast.For | ast.While, loop: str, made: ast.expr, names: list[str]) -> list[ast.stmt]:
        """The loop, which is made first, and whose turns hide what is unknown."""
        first: ast.stmt = ast.Assign([ast.Name(loop, ast.Store())], made)
        after = [_hidden(loop, names)] if names else []
        if names:
            node.body.insert(0, _hidden(loop, names))
        return [ast.copy_location(statement, node) for statement in (first, node, *after)]


def _stored(body: list[ast.stmt]) -> list[str]:
    """The names that statements assign."""
    nodes = (node for statement in body for node in ast.walk(statement))
    return sorted({node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)})
