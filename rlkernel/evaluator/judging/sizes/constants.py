"""The sizes among a reference file's module constants: which there are, and the file with others in their place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from typing import Any

from rlkernel.evaluator.judging.sizes.resizing import Sizes
from rlkernel.reference_text import SMALL, apply_small, is_size

TOKENS = r"ignore|(bos|eos|unk|mask|blank|cls|sep)_?(id|idx|index|token)\b"
"""Names of constants that are numbers among the inputs, such as the token that ends a text."""
STRUCTURE = re.compile(rf"kernel|stride|pad|dilat|group|head|n(um)?_?(layer|block|expert|stage)s?\b|seed|{TOKENS}", re.IGNORECASE)
"""Names of constants that say what a problem is, not how large."""
VALUES = ("ignore_index", "padding_idx", "blank", "fill_value")
"""Arguments of torch's functions that are numbers among the inputs or results, and no sizes."""
LENGTHS = ("shape", "size", "numel", "dim", "ndim", "len")
"""What is held equal to a size."""
SHAPE = re.compile(rf"kernel|stride|pad|dilat|n(um)?_?(layer|block|stage)s?\b|seed|{TOKENS}", re.IGNORECASE)
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
    out, and so are those that are values.

    >>> sizes_of("batch = 2 * 64\\nshape = (32, 32)\\nkernel_size = 7\\nrate = 0.5\\n")
    {'batch': 128, 'shape': (32, 32)}
    """
    return {name: value for name, value in _numbers(source).items() if not STRUCTURE.search(name)}


def counts_of(source: str) -> Sizes:
    """The sizes, and besides those constants that must keep their ratio to them, such as numbers of groups and heads.

    >>> counts_of("features = 512\\ngroups = 8\\nkernel_size = 7\\n")
    {'features': 512, 'groups': 8}
    """
    return {name: value for name, value in _numbers(source).items() if not SHAPE.search(name)}


def _numbers(source: str) -> Sizes:
    """The module constants that are whole numbers and no values, see `values_of`."""
    values = values_of(source)
    return {name: value for name, value in _assignments(source).items() if is_size(value) and name not in values}


def values_of(source: str) -> set[str]:
    """The names that are used as numbers among the inputs alone, such as the label of what a loss ignores: they are given to
    nothing but `VALUES`, or held against what is no length. A smaller one would be another number there.

    >>> sorted(values_of("A = 255\\nB = 9\\nC = 8\\nf(x, ignore_index=A)\\ny = x != B\\nassert x.shape[0] == C\\n"))
    ['A', 'B']
    """
    tree = ast.parse(source.removeprefix("\ufeff"))
    used = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    given = [node.value for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg in VALUES]
    held = [side for node in ast.walk(tree) if isinstance(node, ast.Compare) for side in _held_equal(node)]
    names = [side.id for side in (*given, *held) if isinstance(side, ast.Name)]
    return {name for name in names if names.count(name) == used.count(name)}


def _held_equal(node: ast.Compare) -> list[ast.expr]:
    """The sides of a comparison that asks for equality, and not for that of a length."""
    words = {getattr(part, "attr", getattr(part, "id", "")) for part in ast.walk(node)}
    equal = all(isinstance(op, (ast.Eq, ast.NotEq)) for op in node.ops)
    return [node.left, *node.comparators] if equal and not words.intersection(LENGTHS) else []


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
