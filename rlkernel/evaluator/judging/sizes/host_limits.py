"""Numbers that host code of a candidate holds sizes against: `turns = 30 if x.numel() < 1000000 else 1`.

Where results are compared all sizes may lie on one side of such a number that lie on the other at full shape. `limited` gives
each a name in the text, which stands for a number as much smaller there as the problem is: whoever takes another way at full
shape takes it there, too. So it is with what a size is divided by, `n // 10000000`, and what its logarithm is held against,
`n.bit_length() > 23`; and a size of the full shape that is asked for by equality becomes that which stands for it. What only
chooses how many warps or stages a kernel has is left alone, since no result depends on it. So is a number that stands elsewhere,
too, as 132 in a grid of `min(132, tiles)` whose programs take every 132nd tile, and a size that has a name in the text. The most
of something may be the extent of a block, `min(n, 1024)`, and becomes another power of two where it is a small one: none below a
power of two that stays, because it may be made of blocks that are as long.
Source: ours.
"""

from __future__ import annotations

import ast
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

from rlkernel.evaluator.judging.sizes.counterparts import MOST_OF_BLOCK, Counterparts
from rlkernel.evaluator.judging.sizes.own_sizes import beginning
from rlkernel.reference_text import literal, of_kernel, replace_spans

PREFIX = "_HOST_LIMIT_"
LEAST = 33
"""The smallest number that is taken for one that sizes are held against: smaller ones count operands and warps."""
MOST = 1 << 60
FAR = 16
"""How much larger a size is of which a block is no part any more: blocks of one element would take the interpreter too long."""
MOST_RAISED = 3
"""Numbers of a text of which it is found out whether they decide at full shape."""
_EXTREMES = {"min", "max"}
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_EQUAL = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)
_LOGARITHMS = {"bit_length": 2.0, "log2": 2.0, "log10": 10.0, "log": math.e}
_ROUNDED = {"int", "round", "floor", "ceil"}
_HARMLESS = {"num_warps", "num_stages", "num_ctas", "maxnreg", "warps", "stages"}
"""What no result depends on."""


@dataclass(frozen=True, slots=True)
class Found:
    """A number in a text."""

    node: ast.expr
    value: int | float
    base: float | None = None
    """That of the logarithm which is held against it; None of a size."""
    equal: bool = False
    """Whether it is asked if a size is this one."""
    block: bool = False
    """Whether it is the most of something, and may be the extent of a block, as in `min(n, 1024)`."""

    @property
    def name(self) -> str:
        """What stands in its place."""
        kind = "BLOCK_" if self.block else "SIZE_" if self.equal else "" if self.base is None else f"LOG{self.base:.0f}_"
        return f"{PREFIX}{kind}{self.value!r}".replace(".", "_").replace("+", "")


@dataclass(frozen=True, slots=True)
class HostLimits:
    """The numbers of a candidate's text that sizes are held against, as `limited` has named them."""

    numbers: Mapping[str, int | float]
    bases: Mapping[str, float] = field(default_factory=dict)
    """Those of the logarithms that some of them are held against."""
    sizes: AbstractSet[str] = frozenset()
    """Those of which it is asked if a size is this one."""
    blocks: Mapping[str, int] = field(default_factory=dict)
    """Those that may be extents of blocks, and the least that stands for each: powers of two, as all smaller values are."""

    def at(self, known: Counterparts) -> dict[str, list[int | float]]:
        """`[full value, small value]` of each: smaller by as much as the product that has become smaller most.

        >>> HostLimits({"A": 4000}).at({1024: (256,), 1024 * 512: (256 * 8,), 512: (8,)})
        {'A': [4000, 15]}
        >>> HostLimits({"A": 23}, {"A": 2.0}).at({1024: (256,), 1024 * 512: (256 * 8,), 512: (8,)})
        {'A': [23, 15]}
        >>> HostLimits({"A": 1024}, blocks={"A": 1}).at({1024: (200,)})
        {'A': [1024, 128]}
        """
        shares = {full: smaller[0] / full for full, smaller in known.items()}
        smallest = min(shares.values(), default=1.0)

        def smaller(name: str, value: float) -> float:
            if name in self.sizes:
                return known[int(value)][0]
            beside = [share for full, share in shares.items() if value < full < FAR * value] if name in self.blocks else []
            return self._smaller(name, value, min(beside, default=smallest))

        return {name: [value, smaller(name, value)] for name, value in self.numbers.items()}

    def _smaller(self, name: str, value: float, share: float) -> float:
        """What stands for a number where sizes are this share of themselves."""
        base = self.bases.get(name)
        if name in self.blocks:
            return max(self.blocks[name], 1 << max(0, math.floor(math.log2(value * share))))
        made = max(1, math.floor(value * share)) if base is None else max(0, math.floor(value + math.log(share, base)))
        return type(value)(made)

    def alone(self, name: str) -> HostLimits:
        """One of them."""
        return replace(self, numbers={name: self.numbers[name]})

    def without(self, name: str) -> HostLimits:
        """All but one of them."""
        return replace(self, numbers={other: value for other, value in self.numbers.items() if other != name})

    def halved(self, name: str, known: Counterparts) -> list[HostLimits]:
        """One of the blocks alone, with each smaller value that may stand for it, the largest first.

        >>> [some.at({4096: (1024,)}) for some in HostLimits({"A": 256}, blocks={"A": 1}).halved("A", {4096: (1024,)})]
        [{'A': [256, 128]}, {'A': [256, 64]}]
        """
        value, least = int(self.numbers[name]), int(self.at(known)[name][1])
        return [replace(self.alone(name), blocks={name: value >> by}) for by in range(1, (value // least).bit_length())]

    def beyond(self) -> list[dict[str, list[int | float]]]:
        """`[full value, larger value]` of some of them, in each way to choose these: no size is as large. There are none where
        the numbers are too many. What a text does at full shape because of them, it does not do in one of these ways.

        >>> HostLimits({"A": 2}).beyond() == [{"A": [2, 2 * MOST]}]
        True
        """
        if len(self.numbers) > MOST_RAISED:
            return []
        larger = {name: [value, value * MOST] for name, value in self.numbers.items()}
        chosen = [some for size in range(len(larger)) for some in combinations(larger, size + 1)]
        return [{name: larger[name] for name in some} for some in chosen]


def limited(code: str, known: Counterparts) -> tuple[str, HostLimits | None]:
    """The text with a name in place of each number that host code holds sizes against; None where there are none. known: the
    numbers that are sizes.

    >>> limited("import torch\\nfast = n > 5000\\n", {4096: (16,)})[0]
    'import torch; _HOST_LIMIT_5000 = 5000\\nfast = n > _HOST_LIMIT_5000\\n'
    """
    try:
        tree = ast.parse(code)
        start = beginning(tree)
        if start is None or PREFIX in code:
            return code, None
        found = _alone(tree, [*_numbers(tree, known, _names(tree)), *_logarithms(tree), *_equal(tree, known)])
        if not found:
            return code, None
        numbers = {one.name: one.value for one in found}
        made = "".join(f"; {name} = {value!r}" for name, value in numbers.items())
        text = ast.get_source_segment(code, start)
        assert text is not None
        code = replace_spans(code, [(start, text + made), *((one.node, one.name) for one in found)])
        ast.parse(code)  # a name may run into what follows a number
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return code, None
    bases = {one.name: one.base for one in found if one.base is not None}
    sizes = frozenset(one.name for one in found if one.equal)
    return code, HostLimits(numbers, bases, sizes, _blocks(tree, found))


def _alone(tree: ast.Module, found: list[Found]) -> list[Found]:
    """Those numbers that a text has nowhere else."""
    every = Counter(literal(node) for node in ast.walk(tree) if isinstance(node, (ast.Constant, ast.BinOp)))
    here = Counter(one.value for one in found)
    return [one for one in found if every[one.value] == here[one.value]]


def _blocks(tree: ast.Module, found: list[Found]) -> dict[str, int]:
    """Those that may be extents of blocks, and the largest power of two below each that a text has and that stays."""
    blocks = {one.name: int(one.value) for one in found if one.block}
    written = {literal(node) for node in ast.walk(tree) if isinstance(node, (ast.Constant, ast.BinOp))} - {*blocks.values()}
    stay = [value for value in written if type(value) is int and value > 0 and not value & (value - 1)]
    return {name: max((one for one in stay if one < value), default=1) for name, value in blocks.items()}


def _numbers(node: ast.AST, known: Counterparts, names: AbstractSet[str]) -> Iterator[Found]:
    """The numbers that are held against something in host code, in the order of the text; `names` are held, too."""
    if isinstance(node, ast.FunctionDef) and of_kernel(node):
        for decorator in node.decorator_list:  # what heuristics and pruning say is host code
            yield from _numbers(decorator, known, names)
        return
    if isinstance(node, (ast.Assert, ast.JoinedStr)) or _chooses_speed(node):
        return
    sides = _sides(node)
    if isinstance(node, ast.Assign) and any(isinstance(one, ast.Name) and one.id in names for one in node.targets):
        sides = [node.value]
    for side in sides:
        value = _whole(side)
        if value is None or (isinstance(node, ast.Assign) and value in known):
            continue
        if isinstance(node, ast.Compare) or value > MOST_OF_BLOCK or int(value) & (int(value) - 1):
            yield Found(side, value)
        elif type(value) is int and _is_minimum(node):
            yield Found(side, value, block=True)
    for side in _parts(node):
        value = _whole(side)
        if value is not None and value > MOST_OF_BLOCK:
            yield Found(side, value)
    for child in ast.iter_child_nodes(node):
        yield from _numbers(child, known, names)


def _whole(node: ast.expr) -> int | float | None:
    """A whole number of a text that sizes may be held against."""
    value: Any = literal(node)
    whole = type(value) is int or (type(value) is float and value.is_integer())
    return value if whole and LEAST <= value <= MOST else None


def _logarithms(node: ast.AST) -> Iterator[Found]:
    """The numbers that logarithms are held against in host code, and by which sizes are shifted, in the order of the text."""
    if isinstance(node, ast.FunctionDef) and of_kernel(node):
        return
    if isinstance(node, (ast.Assert, ast.JoinedStr)) or _chooses_speed(node):
        return
    shifted = isinstance(node, ast.BinOp) and isinstance(node.op, ast.RShift)
    sides = [node.right] if isinstance(node, ast.BinOp) and shifted else _sides(node)
    bases = [2.0] if shifted else [found for side in sides if (found := _base(side)) is not None]
    for side in sides if bases else ():
        value: Any = literal(side)
        if type(value) in (int, float) and 0 < value < LEAST:
            yield Found(side, value, bases[0])
    for child in ast.iter_child_nodes(node):
        yield from _logarithms(child)


def _equal(node: ast.AST, known: Counterparts) -> Iterator[Found]:
    """The sizes of a text of which host code asks if they are there, `x.shape == (4096, 8192)`, also as keys of a dict."""
    if isinstance(node, ast.FunctionDef) and of_kernel(node):
        return
    if isinstance(node, (ast.Assert, ast.JoinedStr)) or _chooses_speed(node):
        return
    asked: list[ast.expr] = []
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], _EQUAL):
        asked = [node.left, node.comparators[0]]
    elif isinstance(node, ast.Dict):
        asked = [key for key in node.keys if key is not None]
    for side in asked:
        for one in side.elts if isinstance(side, (ast.Tuple, ast.List, ast.Set)) else [side]:
            value = _whole(one)
            if value is not None and known.get(int(value), (value,))[0] != value:
                yield Found(one, value, equal=True)
    for child in ast.iter_child_nodes(node):
        yield from _equal(child, known)


def _base(node: ast.expr) -> float | None:
    """That of the logarithm which an expression is, `int(math.log2(n))`, or of which it is so many more or less, as
    `n.bit_length() - 1`; None of anything else."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)) and type(literal(node.right)) in (int, float):
        return _base(node.left)
    if not isinstance(node, ast.Call):
        return None
    name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id if isinstance(node.func, ast.Name) else ""
    if name in _ROUNDED and len(node.args) == 1:
        return _base(node.args[0])
    return _LOGARITHMS.get(name) if len(node.args) <= 1 else None


def _sides(node: ast.AST) -> list[ast.expr]:
    """What is held against something by a comparison by order, or by a minimum or maximum of two."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], _ORDER):
        return [node.left, node.comparators[0]]
    extreme = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _EXTREMES
    return node.args if extreme and isinstance(node, ast.Call) and len(node.args) == 2 else []


def _is_minimum(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "min"


def _parts(node: ast.AST) -> list[ast.expr]:
    """The two sides of a quotient."""
    return [node.left, node.right] if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Div, ast.FloorDiv)) else []


def _names(tree: ast.Module) -> set[str]:
    """The variables that are held against something."""
    return {side.id for node in ast.walk(tree) for side in _sides(node) if isinstance(side, ast.Name)}


def _chooses_speed(node: ast.AST) -> bool:
    """Whether all that a statement, an argument or a branch says is how many warps or stages there are."""
    if isinstance(node, ast.Assign):
        return all(isinstance(one, ast.Name) and one.id in _HARMLESS for one in node.targets)
    if isinstance(node, ast.keyword):
        return node.arg in _HARMLESS
    if isinstance(node, ast.If):
        return all(map(_chooses_speed, [*node.body, *node.orelse]))
    return False
