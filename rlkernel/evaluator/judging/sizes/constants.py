"""The sizes among a reference file's module constants: which there are, and the file with others in their place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from typing import Any

from rlkernel.evaluator.judging.sizes.resizing import Sizes
from rlkernel.reference_text import SMALL, apply_small, is_size

STRUCTURE = re.compile(r"kernel|stride|pad|dilat|group|head|n(um)?_?(layer|block|expert|stage)s?\b|seed", re.IGNORECASE)
"""Names of constants that say what a problem is, not how large."""
SHAPE = re.compile(r"kernel|stride|pad|dilat|n(um)?_?(layer|block|stage)s?\b|seed", re.IGNORECASE)
"""Names of constants that stay even where all others are divided by one number."""


def resize(source: str, sizes: Mapping[str, Any], *, name: str = "reference") -> str:
    """The file with other values of its constants. Raises BrokenReference if it cannot be used.

    >>> resize("N = 4096\\n", {"N": 8})
    'N = 8\\n'
    """
    line = _small_line(sizes)
    return apply_small(f"{source.rstrip()}\n{line}", name=name).removesuffix(line)


def sizes_of(source: str) -> Sizes:
    """The module constants that are sizes: whole numbers, products of these, and lists and tuples of them.

    Constants whose name says that they are structure (kernel, stride, padding, groups, heads, number of layers, ...) are left
    out.

    >>> sizes_of("batch = 2 * 64\\nshape = (32, 32)\\nkernel_size = 7\\nrate = 0.5\\n")
    {'batch': 128, 'shape': (32, 32)}
    """
    return {name: value for name, value in _assignments(source).items() if is_size(value) and not STRUCTURE.search(name)}


def counts_of(source: str) -> Sizes:
    """The sizes, and besides those constants that must keep their ratio to them, such as numbers of groups and heads.

    >>> counts_of("features = 512\\ngroups = 8\\nkernel_size = 7\\n")
    {'features': 512, 'groups': 8}
    """
    return {name: value for name, value in _assignments(source).items() if is_size(value) and not SHAPE.search(name)}


def named_sizes(source: str) -> Sizes:
    """All module constants that are sizes, which `SMALL` may name, whatever their names say.

    >>> named_sizes("features = 512\\nkernel_size = 7\\nrate = 0.5\\n")
    {'features': 512, 'kernel_size': 7}
    """
    return {name: value for name, value in _assignments(source).items() if is_size(value)}


def with_small(source: str, sizes: Mapping[str, Any]) -> str:
    """The file with these sizes as its `SMALL`."""
    return f"{source.rstrip()}\n{_small_line(sizes)}"


def _small_line(sizes: Mapping[str, Any]) -> str:
    return f"{SMALL} = {dict(sizes)!r}\n"


def has_small(source: str) -> bool:
    """Whether the file says itself at which sizes results are compared."""
    return SMALL in _assignments(source)


def _assignments(source: str) -> dict[str, Any]:
    """The constants of a module by name, with None for values that are no constants."""
    found: dict[str, Any] = {}
    for statement in ast.parse(source.removeprefix("\ufeff")).body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value is not None:
            found[statement.target.id] = _constant(statement.value)
        if isinstance(statement, ast.Assign):
            pairs: Iterable[tuple[ast.expr, ast.expr]] = [(target, statement.value) for target in statement.targets]
            if len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Tuple):
                values = statement.value.elts if isinstance(statement.value, ast.Tuple) else []
                pairs = zip(statement.targets[0].elts, values, strict=False)
            found |= {target.id: _constant(value) for target, value in pairs if isinstance(target, ast.Name)}
    return found


def _constant(value: ast.expr) -> Any:
    """The value of a whole number, of arithmetic on such, or of a list or tuple of them, which may be repeated; None for anything
    else."""
    if isinstance(value, ast.Constant):
        return value.value if type(value.value) is int else None
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Mult, ast.Pow, ast.FloorDiv, ast.Add, ast.Sub, ast.LShift)):
        left, right = _constant(value.left), _constant(value.right)
        repeated = isinstance(value.op, ast.Mult) and isinstance(left, list) and type(right) is int
        whole = repeated or type(left) is type(right) is int
        return eval(compile(ast.Expression(value), "<constant>", "eval")) if whole else None
    if isinstance(value, (ast.Tuple, ast.List)):
        items = [_constant(item) for item in value.elts]
        return None if None in items else (tuple(items) if isinstance(value, ast.Tuple) else items)
    return None
