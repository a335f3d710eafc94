"""The functions that a kernel can reach, as JSON that says nothing of other kernels, of line numbers or of places in a table.

Two kernels that differ in a helper differ here, and one kernel in two tables does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rlkernel.evaluator.program.schema import Function
from rlkernel.evaluator.program.values import FunctionRef, Value, encode, rewrite


def kernel_text(functions: Sequence[Function], kernel: int, constants: dict[str, Value]) -> list[Any]:
    """A kernel as data that tell it from others: a list of two. First are the functions that the kernel, or a function among its
    constants, can reach; then the constants, which name functions by their place in the first list."""
    order: dict[int, int] = {}
    left = [kernel, *_mentioned(constants)]
    while left:
        index = left.pop(0)
        if index not in order:
            order[index] = len(order)
            left += _mentioned(functions[index].bindings)
    texts = [
        [f.name, f.source, _renumbered(f.bindings, order), f.do_not_specialize, f.constexpr]
        for f in (functions[index] for index in order)
    ]
    return [texts, _renumbered(constants, order)]


def _mentioned(values: dict[str, Value]) -> list[int]:
    """The functions that bindings or constants refer to."""
    found: list[int] = []

    def see(value: Value) -> Value:
        if isinstance(value, FunctionRef):
            found.append(value.index)
        return value

    for value in values.values():
        rewrite(value, see)
    return found


def _renumbered(values: dict[str, Value], order: dict[int, int]) -> dict[str, Any]:
    """Bindings or constants as JSON, with functions by their place in `order`."""

    def change(value: Value) -> Value:
        return FunctionRef(order[value.index]) if isinstance(value, FunctionRef) else value

    return {name: encode(rewrite(value, change)) for name, value in values.items()}
