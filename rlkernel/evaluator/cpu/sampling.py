"""Which programs of a grid are followed where a launch is priced: few where all do the same, more where they differ.

Two programs tell what a launch costs if all are alike. Those of a causal attention are not: a program near the diagonal's begin
does a hundredth of the work of the last one, and two of them would give a price that chance decides.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator

from rlkernel.evaluator.judging.counts import Counts
from rlkernel.evaluator.program.kernel_text import canonical
from rlkernel.evaluator.program.schema import Function, Program
from rlkernel.evaluator.program.values import FunctionRef

ALIKE = 2
"""Programs that are followed of a launch whose programs are alike."""
LOOKED_AT = 4
"""Programs that are compared before those of a kernel whose branches or loops depend on the program are taken to be alike."""
SPREAD = 16
"""Programs that are followed in place of the first ones, where too few of these write."""
DIFFERENT = 4
"""Programs that are followed besides, of a launch whose programs differ."""
UNEVEN = 0.25
"""Share of the larger of two programs' work from which on they differ."""
MOST_READS = 1500
"""Reads of memory after which no more programs are followed because they differ. One takes about a tenth of a millisecond."""


def varying(program: Program) -> frozenset[int]:
    """The functions in which a branch or a loop depends on which program runs, there or in what they call."""
    found = {index for index, function in enumerate(program.functions) if _decides(function, _by_program(function, False))}
    helpers = {index for index, function in enumerate(program.functions) if _decides(function, _by_program(function, True))}
    for index, function in enumerate(program.functions):
        open_, met = _called(function), set[int]()
        while open_:
            callee = open_.pop()
            if callee not in met and callee < len(program.functions):
                met.add(callee)
                open_ |= _called(program.functions[callee])
        if met & (helpers | found):
            found.add(index)
    return frozenset(found)


def _called(function: Function) -> set[int]:
    return {value.index for value in function.bindings.values() if isinstance(value, FunctionRef)}


def _by_program(function: Function, helper: bool) -> set[str]:
    """The names in a function that may depend on the program: through `program_id`, through what a function of the candidate's
    own gives, and in a helper through the parameters that are no constants."""
    tree = canonical(function).tree
    names = {name for name, value in function.bindings.items() if isinstance(value, FunctionRef)}
    if helper:
        names |= {name for name, note in canonical(function).parameters.items() if "constexpr" not in note}
    assigned = [(node, _stored(node)) for node in ast.walk(tree) if _stored(node)]
    while True:
        more = {name for node, targets in assigned if _depends(node, names) for name in targets}
        if more <= names:
            return names
        names |= more


def _stored(node: ast.AST) -> set[str]:
    if not isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.NamedExpr)):
        return set()
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return {inner.id for target in targets for inner in ast.walk(target) if isinstance(inner, ast.Name)}


def _depends(node: ast.AST, names: set[str]) -> bool:
    """Whether what a node assigns or is mentions one of the names or the program's own number."""
    part = node.iter if isinstance(node, ast.For) else node
    return any(
        (isinstance(inner, ast.Name) and (inner.id in names or inner.id == "program_id"))
        or (isinstance(inner, ast.Attribute) and inner.attr == "program_id")
        for inner in ast.walk(part)
    )


def _decides(function: Function, names: set[str]) -> bool:
    """Whether a branch or the bounds of a loop mention one of the names."""
    nodes = list(ast.walk(canonical(function).tree))
    decided: list[ast.expr] = [node.test for node in nodes if isinstance(node, (ast.If, ast.While, ast.IfExp))]
    decided += [node.iter for node in nodes if isinstance(node, ast.For)]
    return any(_depends(one, names) for one in decided)


def work(counts: Counts) -> tuple[float, float, float]:
    """What was counted so far: bytes, operations, operations of products."""
    return sum(counts.traffic.values()), counts.flops, sum(counts.matrix_flops.values())


def differ(works: list[tuple[float, float, float]]) -> bool:
    """Whether programs do different work."""
    return any(max(kind) - min(kind) > UNEVEN * max(kind) for kind in zip(*works, strict=True))


def drawn(grid: tuple[int, int, int], chance: random.Random, *, varied: bool) -> Iterator[int]:
    """The numbers of the programs that are followed first: all of a small grid in order; one of either half; or, if `varied`,
    `LOOKED_AT` that are spread over the grid, so that they differ where programs do."""
    total = grid[0] * grid[1] * grid[2]
    if total <= ALIKE:
        yield from range(total)
    elif varied:
        yield from spread(grid, LOOKED_AT, chance)
    else:
        yield chance.randrange(total // 2)
        yield total // 2 + chance.randrange(total - total // 2)


def spread(grid: tuple[int, int, int], count: int, chance: random.Random) -> Iterator[int]:
    """So many numbers of programs, spread evenly over each dimension of the grid. Every two of them lie opposite each other, so
    that two alone tell the mean of work which grows along the grid."""
    axes = []
    for size in grid:
        places = [min(size - 1, int((slot + chance.random()) * size / count)) for slot in range(count)]
        axes.append([places[slot] for slot in _opposite(count, chance)])
    for x, y, z in zip(*axes, strict=True):
        yield x + grid[0] * (y + grid[1] * z)


def _opposite(count: int, chance: random.Random) -> list[int]:
    """The numbers below `count` in random order, each beside its mirror image."""
    pairs = [chance.random() for _ in range(count)]
    return sorted(range(count), key=lambda number: (pairs[min(number, count - 1 - number)], chance.random()))
