"""Sizes that are places in an axis, as the end of a slice is, and the axis that each lies in.

The last of 10,000 rows is 9,999, and a part of 500 columns may end at 489. At other sizes such a number belongs to its axis:
where it alone is longer it lies outside, which no problem of that kind asks for.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable

from rlkernel.evaluator.judging.sizes.made_inputs import making
from rlkernel.evaluator.judging.sizes.resizing import Sizes, numbers_of

PLACE = 2
"""By how much two sizes differ at most of which one may be a place in the other, whatever they are given to."""
NEAR = 0.1
"""The part of the larger size by which two differ at most of which one is given to no call: it is the extent of no tensor."""
LONG = 64
"""Above what: small sizes are close by chance, as a kernel of 3 and 4 channels."""


def plain_names(source: str) -> set[str]:
    """The names that `get_inputs` mentions, and gives to no call: what it hands over as it is.

    >>> sorted(plain_names("def get_inputs():\\n    return [torch.rand(ROWS, COLUMNS), ROWS, LAST]\\n"))
    ['LAST']
    """
    nodes = [node for function in making(source, "get_inputs") for node in ast.walk(function)]
    given = {name for node in nodes if isinstance(node, ast.Call) for name in _loaded([node])}
    return _loaded(nodes) - given


def _loaded(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that are read in syntax trees."""
    every = (node for top in nodes for node in ast.walk(top))
    return {node.id for node in every if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def with_places(sizes: Sizes, names: list[str], plain: Collection[str] = ()) -> list[str]:
    """These names and those of sizes that they are places in, or that are places in them, in the order of `sizes`. plain: the
    names that are given to no call.

    >>> with_places({"last": 9998, "rows": 10000, "first": 9, "columns": 8}, ["last"])
    ['last', 'rows']
    >>> with_places({"end": 489, "columns": 500, "rows": 480}, ["columns"], ["end"])
    ['end', 'columns', 'rows']
    >>> with_places({"columns": 500, "rows": 480}, ["columns"])
    ['columns']
    """
    found = set(names)
    while more := {name for name in sizes.keys() - found if any(_meet(sizes, name, other, plain) for other in found)}:
        found |= more
    return [name for name in sizes if name in found]


def outside(full: Sizes, before: Sizes, sizes: Sizes, plain: Collection[str]) -> bool:
    """Whether a size that lay in an axis, as at full shape, lies outside of it now.

    >>> full, before = {"end": 489, "columns": 500}, {"end": 61, "columns": 62}
    >>> outside(full, before, {"end": 122, "columns": 62}, ["end"]), outside(full, before, {"end": 122, "columns": 124}, ["end"])
    (True, False)
    """
    pairs = ((one, other) for one in full for other in full if one != other and _meet(full, one, other, plain))
    return any(_under(full, one, other) and _under(before, one, other) and _under(sizes, other, one) for one, other in pairs)


def _meet(sizes: Sizes, one: str, other: str, plain: Collection[str]) -> bool:
    """Whether one of two sizes may be a place in the other."""
    most = NEAR if one in plain or other in plain else 0.0
    pairs = ((a, b) for a in numbers_of(sizes[one]) for b in numbers_of(sizes[other]))
    return any(0 < abs(a - b) <= max(PLACE, most * max(a, b)) and min(a, b) > LONG for a, b in pairs)


def _under(sizes: Sizes, one: str, other: str) -> bool:
    """Whether all numbers of a size are below those of another."""
    return max(numbers_of(sizes[one])) < min(numbers_of(sizes[other]))
