"""The text of a reference file: its variant at the sizes of its `SMALL`, and what of it the prompt shows. Nothing is executed."""

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping, Sequence
from typing import Any

from rlkernel.errors import BrokenReference

SMALL = "SMALL"


def apply_small(source: str, *, name: str = "reference") -> str:
    """The same file with the module constants named in its `SMALL` dict replaced; unchanged without `SMALL`.

    Raises BrokenReference when the file does not parse, when `SMALL` is not a literal dict of sizes, or when it names a
    constant that the file does not assign in a plain `NAME = value` line.

    >>> apply_small("N = 4096\\nSMALL = {'N': 8}\\n")
    "N = 8\\nSMALL = {'N': 8}\\n"
    >>> apply_small("N = 4096\\nSMALL = {'N': 8}\\nSMALL = {'N': 16}\\n").splitlines()[0]
    'N = 16'
    """
    source = source.removeprefix("\ufeff")
    tree = parsed(source, name)
    overrides = _small_overrides(tree, name)
    if not overrides:
        return source
    spans: list[tuple[ast.expr, str]] = []
    for statement in tree.body:
        spans += [(value, repr(overrides[target])) for target, value in _assigned(statement) if target in overrides]
    found = {target for statement in tree.body for target, _ in _assigned(statement)}
    if unknown := sorted(set(overrides) - found):
        raise BrokenReference(
            f"{name}: SMALL names {unknown[0]}, but no line assigns `{unknown[0]} = ...` at the top of the file"
        )
    if len({(value.lineno, value.col_offset) for value, _ in spans}) < len({(v.lineno, v.col_offset, t) for v, t in spans}):
        raise BrokenReference(f"{name}: SMALL gives other values to names that one line assigns together; give them the same")
    return replace_spans(source, spans)


def without_small(source: str) -> str:
    """The file without the lines that assign `SMALL`: what a problem is, wherever its results are compared.

    >>> without_small("N = 4096\\nSMALL = {'N': 8}\\n")
    'N = 4096\\n'
    """
    text = source.removeprefix("\ufeff")
    lines = text.splitlines(keepends=True)
    for statement in ast.parse(text).body[::-1]:
        if any(target == SMALL for target, _ in _assigned(statement)):
            del lines[statement.lineno - 1 : statement.end_lineno]
    return "".join(lines)


def small_constants(source: str, *, name: str = "reference") -> dict[str, list[Any]]:
    """`[full value, small value]` of each constant in `SMALL` that the file assigns as a literal. Raises BrokenReference.

    >>> small_constants("N = 4096\\nSMALL = {'N': 8}\\n")
    {'N': [4096, 8]}
    """
    tree = parsed(source.removeprefix("\ufeff"), name)
    small = _small_overrides(tree, name)
    full = {target: literal(value) for statement in tree.body for target, value in _assigned(statement)}
    return {key: [full[key], small[key]] for key in small if full.get(key) is not None}


def shrink(source: str, constants: Mapping[str, Sequence[Any]]) -> str:
    """A candidate's text for the small shapes: where it repeats a constant of the reference, `NAME = full`, NAME is small.

    Without this, no candidate could create a parameter whose shape is such a constant. Text that does not parse is unchanged.

    >>> shrink("N = 2048 * 2\\nM = 4096\\n", {"N": [4096, 8]})
    'N = 8\\nM = 4096\\n'
    >>> shrink("N = M = BLOCK = 4096\\n", {"N": [4096, 8], "M": [4096, 4]})
    'N = M = BLOCK = 4096; N = 8; M = 4\\n'
    >>> shrink("N = M = (\\n    4096)\\n", {"N": [4096, 8]})
    'N = M = 4096; N = 8\\n'
    """
    if not constants:
        return source
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source
    spans: list[tuple[ast.expr | ast.stmt, str]] = []
    for statement in tree.body:
        pairs = [(t, value) for t, value in _assigned(statement) if t in constants and literal(value) == constants[t][0]]
        small = {target: repr(constants[target][1]) for target, _ in pairs}
        if isinstance(statement, ast.Assign) and len(statement.targets) > 1 and pairs:  # some names may keep what others lose
            later = "".join(f"; {target} = {value}" for target, value in small.items())
            spans.append((statement, ast.unparse(statement) + later))  # whole, because a value may stand in brackets
        else:
            spans += [(value, small[target]) for target, value in pairs]
    return replace_spans(source, spans) if spans else source


_ARITHMETIC: Any = {
    ast.Mult: operator.mul, ast.Add: operator.add, ast.Sub: operator.sub, ast.FloorDiv: operator.floordiv,
    ast.LShift: operator.lshift, ast.Pow: operator.pow,
}  # fmt: skip


def literal(value: ast.expr, depth: int = 4) -> Any:
    """A constant, or arithmetic on small whole numbers, such as `2048 * 2`, up to so many operators deep; None for the rest.

    >>> [literal(ast.parse(text, mode="eval").body) for text in ("2048 * 2", "4096 // 512", "1 << 14", "8 // 0", "n // 2")]
    [4096, 8, 16384, None, None]
    """
    if isinstance(value, ast.BinOp) and depth and (compute := _ARITHMETIC.get(type(value.op))):
        left, right = literal(value.left, depth - 1), literal(value.right, depth - 1)
        least = 1 if isinstance(value.op, ast.FloorDiv) else 0
        most = 64 if isinstance(value.op, (ast.LShift, ast.Pow)) else 1 << 40
        whole = type(left) is type(right) is int and abs(left) < 1 << 40 and least <= right < most
        return compute(left, right) if whole else None
    return value.value if isinstance(value, ast.Constant) else None


def of_kernel(function: ast.FunctionDef) -> bool:
    """Whether a function of a candidate is a kernel, and no host code."""
    return any("jit" in ast.unparse(one) for one in function.decorator_list)


def replace_spans(source: str, spans: Sequence[tuple[ast.expr | ast.stmt, str]]) -> str:
    """The text with other text in the places of some of its expressions and statements."""
    # ast counts columns in UTF-8 bytes, so edit bytes; from the end, so that earlier offsets stay right.
    lines = source.encode().splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    text = source.encode()
    once = {(value.lineno, value.col_offset): (value, replacement) for value, replacement in spans}
    for _, (value, replacement) in sorted(once.items(), reverse=True):
        assert value.end_lineno is not None and value.end_col_offset is not None
        first = starts[value.lineno - 1] + value.col_offset
        last = starts[value.end_lineno - 1] + value.end_col_offset
        text = text[:first] + replacement.encode() + text[last:]
    return text.decode()


def prompt_source(source: str, *, name: str = "reference") -> str:
    """What the policy is shown: the file without its docstring and its `SMALL`, which say nothing about the task at full shape.

    >>> prompt_source('"A sum."\\nimport torch\\n\\nN = 4\\nSMALL = {"N": 2}\\n')
    'import torch\\n\\nN = 4\\n'
    """
    source = source.removeprefix("\ufeff")
    tree = parsed(source, name)
    lines = source.splitlines(keepends=True)
    drop: set[int] = set()
    for position, statement in enumerate(tree.body):
        assert statement.end_lineno is not None
        own = set(range(statement.lineno - 1, statement.end_lineno))
        is_docstring = position == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if is_docstring or any(target == SMALL for target, _ in _assigned(statement)):
            drop |= own | _blank_before(lines, statement.lineno - 1)
    text = "".join(line for index, line in enumerate(lines) if index not in drop)
    return text.strip("\r\n") + "\n"


def _blank_before(lines: list[str], index: int) -> set[int]:
    blank: set[int] = set()
    while index > 0 and not lines[index - 1].strip():
        index -= 1
        blank.add(index)
    return blank


def small_of(source: str, *, name: str = "reference") -> dict[str, Any]:
    """The file's `SMALL`; empty without one. Raises BrokenReference where it is not a literal dict of sizes.

    >>> small_of("SMALL = {'N': 8, 'SHAPE': (3, 4)}\\n")
    {'N': 8, 'SHAPE': (3, 4)}
    """
    return _small_overrides(parsed(source.removeprefix("\ufeff"), name), name)


def _small_overrides(tree: ast.Module, name: str) -> dict[str, Any]:
    """What `SMALL` says: its last line, as everywhere in Python. So a line that is added at the end of a file counts."""
    lines = [(value, statement.lineno) for statement in tree.body for target, value in _assigned(statement) if target == SMALL]
    return _checked_small(lines[-1][0], f"{name}: SMALL on line {lines[-1][1]}") if lines else {}


def _checked_small(value: ast.expr, what: str) -> dict[str, Any]:
    try:
        overrides = ast.literal_eval(value)
    except (ValueError, TypeError):  # TypeError: a literal that cannot be a key
        overrides = None
    if not isinstance(overrides, dict) or not all(isinstance(key, str) for key in overrides):
        raise BrokenReference(f'{what} is not a literal dict such as {{"N": 64}}')
    for key, size in overrides.items():
        if not is_size(size):
            raise BrokenReference(f"{what} gives {key} = {size!r}, which is no size; use a whole number of at least 1")
    return overrides


def is_size(value: Any) -> bool:
    """Whether a value is a whole number of at least 1, or a tuple or list of such, which is not empty.

    >>> [is_size(value) for value in (8, (3, [4]), 0, True, 1.5, "8", ())]
    [True, True, False, False, False, False, False]
    """
    if isinstance(value, (tuple, list)):
        return bool(value) and all(map(is_size, value))
    return type(value) is int and value > 0


def _assigned(statement: ast.stmt) -> list[tuple[str, ast.expr]]:
    """(name, value) pairs of `N = v`, `N: int = v`, `M = N = v` and `M, N = v, w`; other statements assign nothing that SMALL can
    replace."""
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value is not None:
        return [(statement.target.id, statement.value)]
    if not isinstance(statement, ast.Assign):
        return []
    value = statement.value
    if all(isinstance(target, ast.Name) for target in statement.targets):
        return [(target.id, value) for target in statement.targets if isinstance(target, ast.Name)]
    if len(statement.targets) != 1:
        return []
    target = statement.targets[0]
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        pairs = zip(target.elts, value.elts, strict=True)
        return [(element.id, item) for element, item in pairs if isinstance(element, ast.Name)]
    return []


def parsed(source: str, name: str) -> ast.Module:
    """The syntax tree of a file. `name` stands in messages. Raises BrokenReference."""
    try:
        return ast.parse(source)
    except SyntaxError as error:
        where = f"line {error.lineno}: " if error.lineno else ""
        raise BrokenReference(f"{name}: {where}{error.msg}") from error
    except ValueError as error:  # Python 3.11 on a null byte
        raise BrokenReference(f"{name}: {error}") from error
