"""A kernel's text with other parameters than its author wrote: defaults as values, and constants that only a run knows."""

from __future__ import annotations

import ast
import math
from typing import Any


def with_defaults(source: str, function: Any) -> str:
    """A kernel's text with its parameters' defaults as the numbers and strings that they were when it was defined: their names
    are those of the place where that was."""
    definition = ast.parse(source).body[0]
    assert isinstance(definition, ast.FunctionDef)
    values = [*(function.__defaults__ or ())]
    named = function.__kwdefaults__ or {}
    found = [*zip(definition.args.defaults, values, strict=True)]
    found += [
        (node, named[a.arg]) for a, node in zip(definition.args.kwonlyargs, definition.args.kw_defaults, strict=True) if node
    ]
    lines = source.encode().split(b"\n")
    for node, value in sorted(found, key=lambda pair: (pair[0].lineno, pair[0].col_offset), reverse=True):
        plain = isinstance(value, (bool, int, str)) or (isinstance(value, float) and math.isfinite(value))
        if plain and isinstance(node, ast.Name):
            line = lines[node.lineno - 1]
            lines[node.lineno - 1] = line[: node.col_offset] + repr(value).encode() + line[node.end_col_offset :]
    return b"\n".join(lines).decode()


class _Freed(ast.NodeTransformer):
    """Writes constants that are made of what a run gives as variables."""

    def __init__(self, freed: tuple[str, ...]) -> None:
        self._freed = set(freed)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None if node.arg in self._freed else node.annotation
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        named = {name.id for name in ast.walk(node.value) if isinstance(name, ast.Name)} if node.value else set()
        if node.value is None or not isinstance(node.target, ast.Name) or not named & self._freed:
            return node
        self._freed.add(node.target.id)
        return ast.copy_location(ast.Assign([node.target], node.value), node)


def at_run_time(source: str, freed: tuple[str, ...]) -> str:
    """A kernel's text that takes some of its constexpr parameters at run time: numbers of weights, for each value of which Triton
    would compile a kernel anew. It computes the same of them in float32. Beside an argument Triton widens half precision to
    float32, beside a constant it does not: there, what is judged is more exact than what was written."""
    if not freed:
        return source
    return ast.unparse(_Freed(freed).visit(ast.parse(source))) + "\n"
