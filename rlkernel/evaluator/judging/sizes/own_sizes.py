"""Sizes that a candidate's text has as numbers of its own, under whatever name: named there, so that they can be smaller where
the problem is.

A reference says `dim = 8192`, and a candidate `N_COLS = 8192`, `x.view(4096, 8192)` or `range(0, 8192, BLOCK)`. Where results
are compared at 512 columns, such a text is wrong or fails, and says nothing of what it does at full shape. `named` gives each
such number a name in the text, and `OwnSizes` says what the name stands for where the problem has smaller sizes. At full shape
the text does what it did before.

What a number stands for is told by `counterparts`. Arithmetic on numbers is one number, such as `1 << 14`, but where one of them
stands for something itself: half of 8192 columns, `8192 // 2`, are no 4096 rows.

A part of a size is a number of its own where blocks are not meant: in a launch's grid (32 of 2048, in blocks of 64), and as what
a kernel holds places against (`o < 1024`, `range(0, 1024, 64)`). It keeps its ratio to the size; where it is a part of several,
it is the smallest or the largest it may be.

So is a number that is made of a size, such as 0.088388 for the root of 128 channels. Where it is also an axis, as 8 is of 64
channels beside 8 heads, it is taken for both by turns.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rlkernel.evaluator.judging.sizes.counterparts import Counterparts, Made, parts
from rlkernel.reference_text import literal, of_kernel, replace_spans

Found = tuple[ast.expr, str, int | float]
"""A number in a text, or arithmetic on such, its name, and what it is."""
RANGES = ("range", "tl.range", "tl.static_range")
LEAST_BOUND = 32
"""The smallest part of a size that is told from other numbers that places are held against."""
PREFIX = "_OWN_SIZE_"
PART = f"{PREFIX}PART_"
GRID = f"{PREFIX}GRID_"
"""A number that counts the programs of a launch: a size, or a part of one where it is none."""
MADE = f"{PREFIX}MADE_"
LARGEST = 1e308
"""A text may hold whole numbers that no float is."""


@dataclass(frozen=True, slots=True)
class OwnSizes:
    """The numbers of a candidate's text that are sizes of the full shape, as `named` has named them."""

    numbers: Mapping[str, int | float]
    least: bool
    """Whether a number that stands for several things is the smallest of them, or as it is."""
    made: bool = True
    """Whether a number that may be made of a size is, as 0.01 of 100 rows. Else a slope of 0.01 stays as it is, and a divisor 8
    is heads."""

    def at(self, known: Counterparts) -> dict[str, list[int | float]]:
        """`[full value, small value]` of each that is another one at smaller sizes.

        >>> OwnSizes({"A": 64, "B": 4096.0}, least=False).at({64: (4, 64), 4096: (16,)})
        {'B': [4096.0, 16.0]}
        """
        found: dict[str, list[int | float]] = {}
        made = Made(known)
        for name, value in self.numbers.items():
            smaller: tuple[float, ...]
            if name.startswith(MADE):
                smaller = made.of(value, divides=True) if self.made else known.get(int(value), ()) if value % 1 == 0 else ()
            elif _is_part(name, value, known):
                smaller = parts(int(value), known, rounded=name.startswith(GRID))[:: 1 if self.least else -1][:1]
            else:
                smaller = known.get(int(value), ())
            if smaller and smaller[0] != value and (self.least or len(smaller) == 1):
                found[name] = [value, type(value)(smaller[0])]
        return found

    def muddled(self, known: Counterparts, first: Counterparts) -> bool:
        """Whether one of the numbers stands for several things here that stood for one at the first sizes: nobody knows which.

        >>> OwnSizes({"A": 2000}, least=True).muddled({2000: (15, 2000)}, {2000: (15,)})
        True
        """
        whole = {int(value) for value in self.numbers.values() if value == value // 1}
        return any(len(known.get(value, ())) > 1 >= len(first.get(value, ())) for value in whole)

    def guessed(self, known: Counterparts) -> bool:
        """Whether all that is another number at smaller sizes may be something else than a part of a size, such as a kernel's
        largest extent of channels. Of a text that is right without it, it says nothing.

        >>> OwnSizes({f"{PART}128K": 128}, least=True).guessed({2048: (128,)})
        True
        >>> OwnSizes({f"{PART}128K": 128, "A": 2048}, least=True).guessed({2048: (128,)})
        False
        """
        return all(_is_part(name, self.numbers[name], known) for name in self.at(known))


def _is_part(name: str, value: float, known: Counterparts) -> bool:
    return name.startswith(PART) or (name.startswith(GRID) and value not in known)


def named(code: str, known: Counterparts, kept: Iterable[str] = ()) -> tuple[str, dict[str, int | float]]:
    """The text with a name in place of each number that has a counterpart, and the numbers by name; none where there are none.

    Lines keep their numbers. A number that is as it is at these sizes may be another one at others, and has a name, too. kept:
    the names of constants that have other values at smaller sizes anyway. The defaults of a kernel's parameters stay, since they
    are part of its text.

    >>> named("import torch\\nshape = 8, 4096\\n", {4096: (16,)})
    ('import torch; _OWN_SIZE_4096 = 4096\\nshape = 8, _OWN_SIZE_4096\\n', {'_OWN_SIZE_4096': 4096})
    """
    try:
        tree = ast.parse(code)
        start = beginning(tree)
        spans = [] if start is None else [*_spans(tree, known, frozenset(kept))]
        if start is None or not spans or PREFIX in code:
            return code, {}
        names = dict(sorted({name: value for _, name, value in spans}.items()))
        made = "".join(f"; {_definition(name, value)}" for name, value in names.items())
        text = ast.get_source_segment(code, start)
        assert text is not None
        found = replace_spans(code, [(start, text + made), *((node, name) for node, name, _ in spans)])
        ast.parse(found)  # a name may run into what follows a number, as in `4096if wide else 64`
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return code, {}
    return found, names


def _definition(name: str, value: float) -> str:
    """Kernels use those global constants alone whose annotation says that they are constexpr."""
    return f"{name}: 'constexpr' = {value!r}" if name.endswith("K") else f"{name} = {value!r}"


def beginning(tree: ast.Module) -> ast.stmt | None:
    """The first simple statement behind which names may be defined; None where a text begins otherwise, or with one that may hold
    numbers itself."""
    future = [one for one in tree.body if isinstance(one, ast.ImportFrom) and one.module == "__future__"]
    first = future[-1] if future else next(iter(tree.body), None)
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return first
    return first if isinstance(first, (ast.Import, ast.ImportFrom)) else None


def _spans(tree: ast.Module, known: Counterparts, kept: frozenset[str]) -> Iterator[Found]:
    """The numbers of a text that get a name, and their names."""
    grids, made = {id(one) for one in _numbers_of_grids(tree)}, Made(known)

    def named_as(node: ast.expr, value: float, inside: bool, bound: bool, divides: bool) -> str | None:
        end = "K" if inside else ""
        if type(value) is float and made.of(value, divides=divides):
            return f"{MADE}{value!r}{end}".replace(".", "_").replace("-", "_").replace("+", "_")
        grid = type(value) is int and id(node) in grids and value > 1
        if grid and (value in known or parts(int(value), known, rounded=True)):
            return f"{GRID}{value!r}{end}"
        if value in known:
            return f"{PREFIX}{value!r}{end}".replace(".", "_").replace("+", "")
        part = type(value) is int and bound and value >= LEAST_BOUND
        return f"{PART}{value!r}{end}" if part and parts(int(value), known) else None

    def below(node: ast.AST, inside: bool, bound: bool = False, divides: bool = False) -> Iterator[Found]:
        if isinstance(node, (ast.Constant, ast.BinOp)):
            value: Any = _value_of(node)
            if divides and type(value) is int and made.of(float(value), divides=True):  # the 8 of 64 channels
                value = float(value)
            if value is not None and isinstance(node, ast.BinOp):  # which is small then
                operands = known.keys() & {one.value for one in ast.walk(node) if isinstance(one, ast.Constant)}
                quotient = isinstance(node.op, ast.Div) and made.of(value)  # 1 / 8 of 64 channels, where 8 heads stay 8
                value = value if not operands or (quotient and all(known[one] == (one,) for one in operands)) else None
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            name = named_as(node, value, inside, bound, divides) if number else None
            if name is not None:
                yield node, name, value
            if name is not None or isinstance(node, ast.Constant):
                return
        if isinstance(node, (ast.JoinedStr, ast.pattern)):  # whose parts have no places of their own, or may be no names
            return
        if isinstance(node, ast.Assign) and {one.id for one in node.targets if isinstance(one, ast.Name)} & kept:
            return
        if isinstance(node, ast.FunctionDef) and of_kernel(node):
            for statement in node.body:
                yield from below(statement, True)
            return
        bounds = {id(one) for one in _bounds(node)} if inside else set()
        for child in ast.iter_child_nodes(node):
            if not (isinstance(node, ast.AnnAssign) and child is node.annotation) and not isinstance(child, ast.arg):
                divides = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and child is node.right
                yield from below(child, inside, id(child) in bounds, divides)

    yield from below(tree, False)


def _value_of(node: ast.expr) -> Any:
    """The value of a constant, of arithmetic on small whole numbers, or of a product or quotient of numbers; None of the rest, as
    of a whole number that no float is.

    >>> [_value_of(ast.parse(text, mode="eval").body) for text in ("1 << 14", "0.25 / 2", "0.25 / n", "1e200 * 1e200", "1 / 0")]
    [16384, 0.125, None, inf, None]
    >>> _value_of(ast.Constant(10**400))
    """
    value = literal(node)
    if type(value) is int and abs(value) > LARGEST:
        return None
    if value is not None or not isinstance(node, ast.BinOp) or not isinstance(node.op, (ast.Mult, ast.Div)):
        return value
    left, right = literal(node.left), literal(node.right)
    if type(left) not in (int, float) or type(right) not in (int, float) or max(abs(left), abs(right)) > LARGEST:
        return None
    if isinstance(node.op, ast.Mult):
        return float(left) * float(right)
    return float(left) / float(right) if right else None


def _bounds(node: ast.AST) -> list[ast.expr]:
    """What places are held against in a comparison, or by a loop's range."""
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.Call) and ast.unparse(node.func) in RANGES:
        return node.args[:2]
    return []


def _numbers_of_grids(tree: ast.Module) -> Iterator[ast.expr]:
    """The numbers in the grids of launches, as they stand in their brackets or in what has the name that stands there."""
    launches = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript))
    grids: list[ast.expr] = [one.slice for one in launches]
    names = {one.id for one in grids if isinstance(one, ast.Name)}
    assigned = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
    grids += [node.value for node in assigned if names & {one.id for one in node.targets if isinstance(one, ast.Name)}]
    for grid in grids:
        yield from grid.elts if isinstance(grid, ast.Tuple) else [grid]
