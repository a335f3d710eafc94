"""Branches of a kernel that a value from memory decides: while a launch is priced, both sides are followed.

So the work that is counted is at least what either side takes, and what the sides assign counts as a value from memory too,
which is there no earlier than either side's (`cpu.latency`). The second side begins where the first one began. A side
that ends in a bare `return` is followed up to there, and then what stands behind the branch, as if it had not returned: `if
label == IGNORED: return` costs what a row with a label costs. Where every way through a function ends in a `return` with a
value, both values are computed, and what the function gives counts as a value from memory. A side that leaves a loop, or gives
a value from inside one, cannot be followed beside the other, and is refused. Loops that do nothing but wait for memory (locks,
flags) are left at once: their turns are no work.

What a changed tree calls and assigns has names that begin with a dot, which no kernel's text can hold.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from typing import Any

import triton.language as tl

from rlkernel.evaluator.cpu.extents import Place
from rlkernel.evaluator.cpu.kinds import known_others, others
from rlkernel.evaluator.cpu.latency import at_least
from rlkernel.evaluator.cpu.loaded import is_loaded, marked_copy

_ACCESSES = {"load", *(f"atomic_{name}" for name in ("cas", "xchg", "add", "and", "or", "xor", "max", "min"))}
_LEAVES = (ast.Break, ast.Continue)
MOST_COPIES = 8
"""How often what follows a branch is written, where both of its sides go on."""
_RESULT = ".result"
"""What a function gives, until its one `return`."""
MOST_EXITS = 64
"""The most returns with a value that are made one: each stands inside the branch before it, and what goes through a tree calls
itself for each."""


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])


def _thunk(value: ast.expr) -> ast.Lambda:
    return ast.Lambda(ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[]), value)


class Branches(ast.NodeTransformer):
    """A kernel's tree, whose branches can be followed on both sides."""

    _count = 0

    def __init__(self, text: str) -> None:
        self._text = text
        """The function's text, by which its branches and loops are known."""

    def _branch(self) -> ast.expr:
        """What the branch is known by that was counted last."""
        return ast.Tuple([ast.Constant(self._text), ast.Constant(self._count)], ast.Load())

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        exits = sum(map(_gives, ast.walk(node)))
        one_exit = _with_one_exit(node.body) if 1 < exits <= MOST_EXITS else None
        if one_exit is not None:
            node.body = [*one_exit, ast.copy_location(ast.Return(ast.Name(_RESULT, ast.Load())), node.body[-1])]
        return self.generic_visit(node)

    def visit__Result(self, node: _Result) -> ast.AST:
        """The value itself, which `visit_Assign` would make a tensor, as a variable's is."""
        self.generic_visit(node)
        return ast.copy_location(ast.Assign(node.targets, node.value), node)

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        inside = [inner for part in (*node.body, *node.orelse) for inner in ast.walk(part)]
        if any(isinstance(inner, _LEAVES) or _gives(inner) for inner in inside):
            return node
        self._count += 1
        side = f".side_{self._count}"
        returns = _Returns(side)
        node.body, node.orelse = returns.block(node.body), returns.block(node.orelse)

        def unless(which: bool, body: list[ast.stmt]) -> list[ast.stmt]:
            test = ast.Compare(ast.Name(side, ast.Load()), [ast.IsNot()], [ast.Constant(which)])
            return [ast.copy_location(ast.If(test, body, []), node)] if body else []

        decided = ast.Assign([ast.Name(side, ast.Store())], _call(".side", node.test, self._branch()))
        stored = {n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        names = sorted(name for name in stored if name == _RESULT or not name.startswith("."))  # a side is read where it is set
        before, first = f"{side}.before.", f"{side}.first."

        def if_open(body: list[ast.stmt]) -> list[ast.stmt]:
            test = ast.Compare(ast.Name(side, ast.Load()), [ast.Is()], [ast.Constant(None)])
            return [ast.copy_location(ast.If(test, body, []), node)] if body else []

        between: list[ast.stmt] = []
        if node.orelse:
            between = [step for n in names for step in (_saved(n, first + n), _restored(n, before + n))]
        other = first if node.orelse else before
        return [
            decided, *if_open([_saved(n, before + n) for n in names]), *unless(False, node.body), *if_open(between),
            *unless(True, node.orelse), *if_open([_unknown(n, other + n) for n in names] + [ast.Expr(_call(".both"))]),
        ]  # fmt: skip

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        self._count += 1
        return ast.copy_location(_call(".choice", node.test, _thunk(node.body), _thunk(node.orelse), self._branch()), node)

    def visit_While(self, node: ast.While) -> ast.AST:
        self.generic_visit(node)
        calls = [inner for inner in ast.walk(node.test) if isinstance(inner, ast.Call)]
        if calls and _only_waits(calls) and not node.orelse and all(isinstance(part, ast.Pass) for part in node.body):
            node.test = _call(".wait", node.test)
        return node


def _only_waits(calls: list[ast.Call]) -> bool:
    """Whether a loop's test accesses the same words in each turn. An access inside another, as in `tl.load(x + tl.load(i))`, may
    lead to another word each time, and then the loop works."""
    if not all(isinstance(call.func, ast.Attribute) and call.func.attr in _ACCESSES for call in calls):
        return False
    given = [value for call in calls for value in (*call.args, *call.keywords)]
    return not any(isinstance(inner, ast.Call) for value in given for inner in ast.walk(value))


def _gives(node: ast.AST) -> bool:
    """Whether a node leaves a function with a value."""
    return isinstance(node, ast.Return) and node.value is not None


def _may_give(node: ast.AST) -> bool:
    return any(_gives(inner) for inner in ast.walk(node))


class _Result(ast.Assign):
    """`.result = value`, in place of `return value`."""


def _with_one_exit(statements: list[ast.stmt], copies: int = MOST_COPIES) -> list[ast.stmt] | None:
    """A function's statements with `.result = value` for each `return value`, and what follows a branch inside its sides that do
    not return; None where a way ends without a value, or a value is given inside a loop, or more `copies` of what follows would
    be made.

    Example: `if v > 0: return a`, then `return b`, becomes `if v > 0: .result = a`, `else: .result = b`.
    """
    for place, statement in enumerate(statements):
        before, after = statements[:place], statements[place + 1 :]
        if isinstance(statement, ast.Return):
            if statement.value is None:
                return None
            return [*before, ast.copy_location(_Result([ast.Name(_RESULT, ast.Store())], statement.value), statement)]
        if not _may_give(statement):
            continue
        if not isinstance(statement, ast.If):
            return None
        ended = [_ends(side) for side in (statement.body, statement.orelse)]
        if not any(ended):
            copies, after = copies // 2, copy.deepcopy(after)  # both sides go on with what follows
            if not copies:
                return None
        body = _with_one_exit(statement.body if ended[0] else [*statement.body, *statements[place + 1 :]], copies)
        orelse = _with_one_exit(statement.orelse if ended[1] else [*statement.orelse, *after], copies)
        if body is None or orelse is None:
            return None
        return [*before, ast.copy_location(ast.If(statement.test, body, orelse), statement)]
    return None


def _ends(statements: list[ast.stmt]) -> bool:
    """Whether statements leave the function on every way."""
    return any(
        isinstance(part, ast.Return) or (isinstance(part, ast.If) and _ends(part.body) and _ends(part.orelse))
        for part in statements
    )


class _Returns(ast.NodeTransformer):
    """What stands inside a branch, whose returns are made only where it is known which side is taken."""

    def __init__(self, side: str) -> None:
        self._side = side

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        return [self.visit(statement) for statement in statements]

    def visit_Return(self, node: ast.Return) -> ast.AST:
        known = ast.Compare(ast.Name(self._side, ast.Load()), [ast.IsNot()], [ast.Constant(None)])
        return ast.copy_location(ast.If(known, [node], []), node)


def _where_there_is(given: ast.Assign, missing: ast.stmt) -> ast.stmt:
    """An assignment of a name's value, and what is done where the name has none."""
    return ast.Try([given], [ast.ExceptHandler(ast.Name(".NameError", ast.Load()), None, [missing])], [], [])


def _unknown(name: str, other: str) -> ast.stmt:
    """`name = .unknown(name, other)`, where there is such a name."""
    both = _call(".unknown", ast.Name(name, ast.Load()), ast.Name(other, ast.Load()))
    return _where_there_is(ast.Assign([ast.Name(name, ast.Store())], both), ast.Pass())


def _saved(name: str, other: str) -> ast.stmt:
    """`other = name`, or None where there is no such name."""
    nothing = ast.Assign([ast.Name(other, ast.Store())], ast.Constant(None))
    return _where_there_is(ast.Assign([ast.Name(other, ast.Store())], ast.Name(name, ast.Load())), nothing)


def _restored(name: str, other: str) -> ast.stmt:
    """`name = other`, where that is not None."""
    known = ast.Compare(ast.Name(other, ast.Load()), [ast.IsNot()], [ast.Constant(None)])
    return ast.If(known, [ast.Assign([ast.Name(name, ast.Store())], ast.Name(other, ast.Load()))], [])


def _side(test: Any) -> bool | None:
    """Which side of a branch a kernel takes; None: nobody knows."""
    if isinstance(test, tl.tensor) and test.handle.data.size == 1:
        others(test.handle)  # which nobody may know
        if is_loaded(test):
            return None
    return bool(test)


def _is_one_for_all(test: Any) -> bool:
    """Whether a test says the same in all programs of a launch that is priced."""
    return not isinstance(test, tl.tensor) or known_others(test.handle) is None


def words(
    as_tensor: Callable[[Any], Any], waits: Callable[[Any], None], open_: Callable[[], None], close: Callable[[], None],
    takes: Callable[[Place, bool], None],
) -> dict[str, Any]:  # fmt: skip
    """What the names mean that `Branches` writes. `as_tensor`: a kernel's number as a tensor; `waits`: is told for what a loop
    waits that does nothing; `open_`: is told that memory decides a branch, and `close` that both of its sides have been followed;
    `takes`: is told which side all programs take, or, of a launch that is not priced, one of them."""

    def taken(test: Any, branch: Place) -> bool | None:
        found = _side(test)
        if found is not None and _is_one_for_all(test):
            takes(branch, found)
        return found

    def decided(test: Any, branch: Place) -> bool | None:
        found = taken(test, branch)
        if found is None:
            open_()
        return found

    def wait(test: Any) -> bool:
        """Whether a loop that does nothing goes on."""
        waits(test)
        return _side(test) or False

    def unknown(value: Any, other: Any = None) -> Any:
        """One of two values, of which nobody knows which."""
        return at_least(marked_copy(as_tensor(value)), other)

    def choice(test: Any, first: Callable[[], Any], second: Callable[[], Any], branch: Place) -> Any:
        side = taken(test, branch)
        if side is not None:
            return first() if side else second()
        one = first()
        return unknown(second(), one)

    return {
        ".side": decided, ".both": close, ".wait": wait, ".choice": choice, ".unknown": unknown,
        ".NameError": NameError,
    }  # fmt: skip
