"""What a candidate's text says of the sizes that it is made for."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from rlkernel.evaluator.judging.sizes.counterparts import FORMS
from rlkernel.evaluator.judging.sizes.resizing import numbers_of
from rlkernel.reference_text import literal, of_kernel, replace_spans, shrink, small_constants
from rlkernel.types import Problem

ALIKE = 1e-3
"""How far from a number that is made of a size a number of a text may be that stands for it, relative: it is often rounded."""
LARGEST = 2**62
"""Above any size; a text may hold numbers that no float does."""
LEAST = 5
"""From which number on a size says something that a text has where results are compared: smaller numbers are in any text."""
TELLING = 32
"""From which number on a size that a text repeats says that the text is made for it."""


def without_asserts(code: str) -> str:
    """A candidate's text without the asserts of its host code; its lines keep their numbers.

    >>> without_asserts("def forward(x):\\n    assert x.shape == (\\n        4096, 4096)\\n    return x\\n")
    'def forward(x):\\n    pass\\n\\n    return x\\n'
    """
    found: list[tuple[ast.stmt, str]] = []

    def collect(node: ast.AST) -> None:
        if isinstance(node, ast.Assert):
            found.append((node, "pass" + "\n" * ((node.end_lineno or node.lineno) - node.lineno)))
        elif not (isinstance(node, ast.FunctionDef) and of_kernel(node)):
            for child in ast.iter_child_nodes(node):
                collect(child)

    try:
        collect(ast.parse(code))
        return replace_spans(code, found)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return code


def repeated_sizes(problem: Problem, code: str) -> frozenset[int]:
    """The sizes of the full shape that a text has as numbers, other than in a constant that has the reference's name, or of which
    it has a number that is made: `0.125` for 64 columns. The 128 of 128 columns is not made of 16,384 rows."""
    constants = small_constants(problem.source, name=problem.name)
    sizes = {number for full, small in constants.values() if full != small for number in numbers_of(full) if number >= TELLING}
    try:
        tree = ast.parse(shrink(code, constants))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    numbers = _numbers(tree)
    made = {number for number in numbers if not _alike({number}, sizes)}
    return frozenset(size for size in sizes if _alike(numbers, (size,)) or _alike(made, (form(size) for form in FORMS)))


def has_small_sizes(problem: Problem, code: str, known: Mapping[int, Sequence[int]]) -> bool:
    """Whether a text has a number that is a size, or a product of sizes, where results are compared and not at full shape, as in
    `row * 96` beside rows of 96. Who is right there may be right nowhere else. known: the counterparts of the full shape's
    numbers (`judging.sizes.counterparts`)."""
    constants = small_constants(problem.source, name=problem.name).values()
    pairs = [pair for full, small in constants for pair in zip(numbers_of(full), numbers_of(small), strict=False)]
    pairs += [(full, small) for full, smaller in known.items() for small in smaller]
    sizes = {small for _, small in pairs if small >= LEAST} - {full for full, _ in pairs}
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    sums = (literal(node) for node in ast.walk(tree) if isinstance(node, ast.BinOp))
    return not sizes.isdisjoint(_numbers(tree) | {value for value in sums if type(value) is int})


def _numbers(tree: ast.Module) -> set[int | float]:
    values = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return {value for value in values if isinstance(value, (int, float)) and abs(value) < LARGEST}


def _alike(numbers: AbstractSet[float], forms: Iterable[float]) -> bool:
    return any(math.isclose(number, form, rel_tol=ALIKE) for form in forms for number in numbers)
