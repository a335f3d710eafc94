"""Sizes that a candidate's text has as numbers of its own, under whatever name: named there, so that they can be smaller where
the problem is.

A reference says `dim = 8192`, and a candidate `N_COLS = 8192`, `x.view(4096, 8192)` or `range(0, 8192, BLOCK)`. Where results
are compared at 512 columns, such a text is wrong or fails, and says nothing of what it does at full shape. `named` gives each
such number a name in the text, and `OwnSizes` says what the name stands for where the problem has smaller sizes. At full shape
the text does what it did before.

What a number stands for is told by the reference's tensors, which are traced at both sizes (`counterparts`): an axis, else the
product of axes that lie side by side, else a simple multiple or part of one of these. A number that stands for several things,
such as 64 samples of 64 heads, is either the smallest of them or as it is. Arithmetic on numbers is one number,
such as `1 << 14`, but where one of them stands for something itself: half of 8192 columns, `8192 // 2`, are no 4096 rows.

A part of a size is a number of its own where blocks are not meant: in a launch's grid (32 of 2048, in blocks of 64), and as what
a kernel holds places against (`o < 1024`, `range(0, 1024, 64)`). It keeps its ratio to the size; where it is a part of several,
it is the smallest or the largest it may be.

So is a number that is made of one size alone, such as 0.088388 for the root of 128 channels: it keeps its ratio to that.
"""

from __future__ import annotations

import ast
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rlkernel.evaluator.judging.sizes.resizing import HOISTED, numbers_of
from rlkernel.reference_text import literal, of_kernel, replace_spans

Shape = tuple[int, ...]
Found = tuple[ast.expr, str, int | float]
"""A number in a text, or arithmetic on such, its name, and what it is."""
Counterparts = Mapping[int, tuple[int, ...]]
"""A number at full shape -> what may stand in its place at smaller sizes, ascending; itself where that is not known, or it is an
axis that stays."""
MOST_NUMBERS = 4096
"""Numbers that may have a counterpart."""
PARTS = (2, 4, 8, 16)
MOST_OF_BLOCK = 1 << 12
"""Powers of two up to which a number is rather the extent of a kernel's block than a multiple or a part of a size."""
NEXT = (1, 2)
"""What is added to an axis or taken from it, such as a window's edge."""
RANGES = ("range", "tl.range", "tl.static_range")
LEAST_BOUND = 32
"""The smallest part of a size that is told from other numbers that places are held against."""
PREFIX = "_OWN_SIZE_"
PART = f"{PREFIX}PART_"
MADE = f"{PREFIX}MADE_"
LARGEST = 1e308
"""A text may hold whole numbers that no float is."""
LEAST_MADE = 32
"""The smallest size of which a number is taken to be made."""
ALIKE = 1e-5
"""How far from such a number it may be, relative."""
FORMS: tuple[Callable[[int], float], ...] = (
    lambda size: 1 / size, lambda size: size**0.5, lambda size: size**-0.5, lambda size: size**-0.5 * math.log2(math.e)
)  # fmt: skip
"""What is made of sizes: means, and scales of attention, also for powers of two."""


def counterparts(constants: Mapping[str, Any], shapes: Iterable[tuple[Shape, Shape]]) -> dict[int, tuple[int, ...]]:
    """What stands at smaller sizes for each number of the full shape that is another one there, and for axes that stay.

    constants: name -> [full value, small value]; shapes: those of the reference's tensors, at full shape and at smaller sizes.

    >>> counterparts({}, [((64, 8, 512), (2, 8, 32))])[64 * 8]
    (32,)
    >>> counterparts({}, [((64, 8, 512), (2, 8, 32))])[8 * 512]
    (256,)
    >>> counterparts({}, [((64, 64), (4, 64))])[64]
    (4, 64)

    Where two numbers would be the same one, who writes the wrong one of them would be right. So it stands for the one that comes
    first in that order, or for neither.

    >>> [counterparts({}, [((16384, 4096, 512), (32, 32, 64))])[number] for number in (16384, 4096, 512)]
    [(16384,), (4096,), (64,)]
    """
    pairs = list(dict.fromkeys(shapes))
    axes = [one for full, small in pairs for one in zip(full, small, strict=True)]
    axes += [one for full, small in constants.values() for one in zip(numbers_of(full), numbers_of(small), strict=False)]
    runs = [one for pair in pairs for one in _runs(*pair)]
    found: dict[int, tuple[int, ...]] = {}
    taken: set[int] = set()
    for rank in (axes, runs, _near(axes + runs)):
        values: dict[int, set[int]] = {}
        for full, small in rank:
            if type(full) is type(small) is int and full >= HOISTED and full not in found:
                values.setdefault(full, set()).add(small)
        often = Counter(small for smaller in values.values() for small in smaller)
        for full, smaller in values.items():
            alone = all(often[small] == 1 and small not in taken for small in smaller)
            found[full] = tuple(sorted(smaller)) if alone else (full,)
        taken |= often.keys()
    return dict(one for _, one in zip(range(MOST_NUMBERS), found.items(), strict=False))


def _runs(full: Shape, small: Shape) -> Iterator[tuple[int, int]]:
    """The products of axes that lie side by side."""
    for start in range(len(full)):
        for end in range(start + 2, len(full) + 1):
            yield math.prod(full[start:end]), math.prod(small[start:end])


def _near(pairs: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Simple multiples and parts of numbers, and numbers beside them; none of those that blocks often have."""
    for full, small in dict.fromkeys(pairs):
        if full == small:
            continue
        made = [(full * part, small * part) for part in PARTS]
        made += [(full // part, small // part) for part in PARTS if full % part == small % part == 0]
        made += [one for more in NEXT for one in ((full + more, small + more), (full - more, max(1, small - more)))]
        yield from (one for one in made if one[0] & (one[0] - 1) or one[0] > MOST_OF_BLOCK)


@dataclass(frozen=True, slots=True)
class OwnSizes:
    """The numbers of a candidate's text that are sizes of the full shape, as `named` has named them."""

    numbers: Mapping[str, int | float]
    least: bool
    """Whether a number that stands for several things is the smallest of them, or as it is."""
    made: bool = True
    """Whether a number that may be made of a size is, as 0.01 of 100 rows; a slope of 0.01 stays as it is."""

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
                smaller = made.of(value) if self.made else ()
            elif name.startswith(PART):
                smaller = parts(int(value), known)[:: 1 if self.least else -1][:1]
            else:
                smaller = known.get(int(value), ())
            if smaller and smaller[0] != value and (self.least or len(smaller) == 1):
                found[name] = [value, type(value)(smaller[0])]
        return found

    def guessed(self, known: Counterparts) -> bool:
        """Whether all that is another number at smaller sizes may be something else than a part of a size, such as a kernel's
        largest extent of channels. Of a text that is right without it, it says nothing.

        >>> OwnSizes({f"{PART}128K": 128}, least=True).guessed({2048: (128,)})
        True
        >>> OwnSizes({f"{PART}128K": 128, "A": 2048}, least=True).guessed({2048: (128,)})
        False
        """
        return all(name.startswith(PART) for name in self.at(known))


def parts(value: int, known: Counterparts) -> tuple[int, ...]:
    """What may stand at smaller sizes for a part of a size, ascending; nothing for what is a size itself.

    >>> parts(32, {2048: (256,)}), parts(32, {2048: (256,), 32: (32,)}), parts(31, {2048: (256,)})
    ((4,), (), ())
    """
    if value < 1 or value in known:
        return ()
    wholes = ((full // value, small) for full, smaller in known.items() if full % value == 0 for small in smaller if small < full)
    return tuple(sorted({small // count for count, small in wholes if small % count == 0}))


class Made:
    """The numbers that are made of sizes, looked up without going through all of them."""

    def __init__(self, known: Counterparts) -> None:
        self._known = known
        sizes = [size for size in known if size >= LEAST_MADE]
        self._all = sorted((form(size), size, number) for size in sizes for number, form in enumerate(FORMS))

    def of(self, value: float) -> tuple[float, ...]:
        """What may stand at smaller sizes for a number that is made of a size, in the order of these; nothing where it may be
        made of several, or is a size itself.

        >>> Made({64: (16,)}).of(0.125), Made({1024: (64,), 32: (8,)}).of(0.03125), Made({64: (16,)}).of(0.126)
        ((0.25,), (), ())
        """
        if value in self._known:
            return ()
        first = bisect_left(self._all, (value * (1 - ALIKE),))
        found = [one for one in self._all[first : first + 2] if one[0] <= value * (1 + ALIKE)]
        if len(found) != 1:
            return ()
        (whole, size, number) = found[0]
        return tuple(value * FORMS[number](smaller) / whole for smaller in self._known[size])


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
        start = _start(tree)
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


def _start(tree: ast.Module) -> ast.stmt | None:
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

    def named_as(node: ast.expr, value: float, inside: bool, bound: bool) -> str | None:
        end = "K" if inside else ""
        if value in known:
            return f"{PREFIX}{value!r}{end}".replace(".", "_").replace("+", "")
        if type(value) is float:
            name = f"{MADE}{value!r}{end}".replace(".", "_").replace("-", "_").replace("+", "_")
            return name if made.of(value) else None
        part = type(value) is int and ((bound and value >= LEAST_BOUND) or (id(node) in grids and value > 1))
        return f"{PART}{value!r}{end}" if part and parts(int(value), known) else None

    def below(node: ast.AST, inside: bool, bound: bool = False, divisor: bool = False) -> Iterator[Found]:
        if isinstance(node, (ast.Constant, ast.BinOp)):
            value: Any = _value_of(node)
            if divisor and type(value) is int and value not in known and made.of(float(value)):  # the 8 of 64 channels
                value = float(value)
            if value is not None and isinstance(node, ast.BinOp):  # which is small then
                operands = {one.value for one in ast.walk(node) if isinstance(one, ast.Constant)}
                value = value if known.keys().isdisjoint(operands) else None
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            name = named_as(node, value, inside, bound) if number else None
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
                divisor = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and child is node.right
                yield from below(child, inside, id(child) in bounds, divisor)

    yield from below(tree, False)


def _value_of(node: ast.expr) -> Any:
    """The value of a constant, of arithmetic on small whole numbers, or of a product or quotient of numbers; None of the rest, such
    as a whole number that no float is.

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
