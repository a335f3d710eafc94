"""The registry of kinds of mutants: small functions that say what else could stand where a part of a candidate's tree stands.

A kind is a function of one node. It yields texts that replace the node's own text, none where the kind does not apply. Kinds of
kernels see the bodies of functions that Triton compiles, kinds of the host see everything else in functions.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Place = Literal["kernel", "host"]
Change = Callable[[ast.AST], Iterator[str]]


@dataclass(frozen=True, slots=True)
class Kind:
    """One way to be wrong."""

    name: str
    place: Place
    change: Change


KINDS: dict[str, Kind] = {}
"""Every kind by its name, in the order of definition."""


def kind(name: str, place: Place = "kernel") -> Callable[[Change], Change]:
    """Register a function as a kind."""

    def register(change: Change) -> Change:
        KINDS[name] = Kind(name, place, change)
        return change

    return register


def called(node: ast.AST, *names: str) -> ast.Call | None:
    """The node, where it calls a function whose last name is one of these. Example: `tl.load(...)` calls load."""
    if not isinstance(node, ast.Call):
        return None
    last = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id if isinstance(node.func, ast.Name) else ""
    return node if last in names else None


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """The value of a keyword of a call; None where it is not given."""
    return next((one.value for one in call.keywords if one.arg == name), None)


def text(node: ast.AST) -> str:
    """The node as one line, in parentheses where it could bind to what stands beside it.

    >>> text(ast.parse("a - b").body[0].value), text(ast.parse("f(a)").body[0].value)
    ('(a - b)', 'f(a)')
    """
    loose = isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare | ast.BoolOp | ast.IfExp | ast.Lambda)
    return f"({ast.unparse(node)})" if loose else ast.unparse(node)


def without(call: ast.Call, *names: str) -> str:
    """The call's text without these keywords."""
    new = copy.copy(call)
    new.keywords = [one for one in call.keywords if one.arg not in names]
    return text(new)


def with_keyword(call: ast.Call, name: str, value: str) -> str:
    """The call's text with another value of a keyword that it has."""
    new = copy.copy(call)
    new.keywords = [ast.keyword(one.arg, parsed(value)) if one.arg == name else one for one in call.keywords]
    return text(new)


def with_args(call: ast.Call, args: Sequence[ast.expr]) -> str:
    """The call's text with other positional arguments."""
    new = copy.copy(call)
    new.args = list(args)
    return text(new)


def renamed(call: ast.Call, name: str) -> str:
    """The call's text with another last name of its function.

    >>> renamed(ast.parse("tl.max(x, axis=0)").body[0].value, "min")
    'tl.min(x, axis=0)'
    """
    new = copy.copy(call)
    func = call.func
    new.func = ast.Attribute(func.value, name, ast.Load()) if isinstance(func, ast.Attribute) else ast.Name(name, ast.Load())
    return text(new)


def parsed(expression: str) -> ast.expr:
    """The tree of one expression."""
    return ast.parse(expression, mode="eval").body


def number(node: ast.AST) -> int | float | None:
    """The value of a number in the text; None for another node, a truth value included."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return node.value
    return None
