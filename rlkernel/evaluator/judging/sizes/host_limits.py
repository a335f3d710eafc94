"""Numbers that host code of a candidate holds sizes against: `turns = 30 if x.numel() < 1000000 else 1`.

Where results are compared all sizes may lie on one side of such a number that lie on the other at full shape. `limited` gives
each a name in the text, which stands for a number as much smaller there as the problem is: whoever takes another way at full
shape takes it there, too. What only chooses how many warps or stages a kernel has is left alone, since no result depends on it.
So is a number that stands elsewhere, too, as 132 in a grid of `min(132, tiles)` whose programs take every 132nd tile.
Source: ours.
"""

from __future__ import annotations

import ast
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from rlkernel.evaluator.judging.sizes.counterparts import MOST_OF_BLOCK, Counterparts
from rlkernel.evaluator.judging.sizes.own_sizes import beginning
from rlkernel.reference_text import literal, of_kernel, replace_spans

Found = tuple[ast.expr, int | float]
"""A number in a text, and what it is."""
PREFIX = "_HOST_LIMIT_"
LEAST = 33
"""The smallest number that is taken for one that sizes are held against: smaller ones count operands and warps."""
MOST = 1 << 60
MOST_RAISED = 3
"""Numbers of a text of which it is found out whether they decide at full shape."""
_EXTREMES = {"min", "max"}
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_HARMLESS = {"num_warps", "num_stages", "num_ctas", "maxnreg", "warps", "stages"}
"""What no result depends on."""


@dataclass(frozen=True, slots=True)
class HostLimits:
    """The numbers of a candidate's text that sizes are held against, as `limited` has named them."""

    numbers: Mapping[str, int | float]

    def at(self, known: Counterparts) -> dict[str, list[int | float]]:
        """`[full value, small value]` of each: smaller by as much as the product that has become smaller most.

        >>> HostLimits({"A": 4000}).at({1024: (256,), 1024 * 512: (256 * 8,), 512: (8,)})
        {'A': [4000, 15]}
        """
        smallest = min((smaller[0] / full for full, smaller in known.items()), default=1.0)
        return {name: [value, type(value)(max(1, math.floor(value * smallest)))] for name, value in self.numbers.items()}

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
        found = [] if start is None or PREFIX in code else _alone(tree, [*_numbers(tree, known, _names(tree))])
        if start is None or not found:
            return code, None
        numbers = {_named(value): value for _, value in found}
        made = "".join(f"; {name} = {value!r}" for name, value in numbers.items())
        text = ast.get_source_segment(code, start)
        assert text is not None
        code = replace_spans(code, [(start, text + made), *((node, _named(value)) for node, value in found)])
        ast.parse(code)  # a name may run into what follows a number
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return code, None
    return code, HostLimits(numbers)


def _alone(tree: ast.Module, found: list[Found]) -> list[Found]:
    """Those numbers that a text has nowhere else."""
    every = Counter(literal(node) for node in ast.walk(tree) if isinstance(node, (ast.Constant, ast.BinOp)))
    here = Counter(value for _, value in found)
    return [one for one in found if every[one[1]] == here[one[1]]]


def _named(value: float) -> str:
    return f"{PREFIX}{value!r}".replace(".", "_").replace("+", "")


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
        value: Any = literal(side)
        whole = type(value) is int or (type(value) is float and value.is_integer())
        if not whole or not LEAST <= value <= MOST or value in known:
            continue
        if isinstance(node, ast.Compare) or value > MOST_OF_BLOCK or int(value) & (int(value) - 1):
            yield side, value
    for child in ast.iter_child_nodes(node):
        yield from _numbers(child, known, names)


def _sides(node: ast.AST) -> list[ast.expr]:
    """What is held against something by a comparison by order, or by a minimum or maximum of two."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], _ORDER):
        return [node.left, node.comparators[0]]
    extreme = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _EXTREMES
    return node.args if extreme and isinstance(node, ast.Call) and len(node.args) == 2 else []


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
