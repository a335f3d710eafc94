"""Kinds that touch the code around kernels: grids, strides that are handed over, blocks, buffers and numbers."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator

from benchmarks.mutants.kinds import called, kind, number, renamed, text


@kind("a program fewer", "host")
def program_fewer(node: ast.AST) -> Iterator[str]:
    """`triton.cdiv(a, b)` becomes one less."""
    if called(node, "cdiv"):
        yield f"({text(node)} - 1)"


@kind("a program more", "host")
def program_more(node: ast.AST) -> Iterator[str]:
    """`triton.cdiv(a, b)` becomes one more."""
    if called(node, "cdiv"):
        yield f"({text(node)} + 1)"


@kind("grid rounded down", "host")
def grid_rounded_down(node: ast.AST) -> Iterator[str]:
    """`triton.cdiv(a, b)` becomes `a // b`."""
    if (call := called(node, "cdiv")) and len(call.args) == 2:
        yield f"({text(call.args[0])} // {text(call.args[1])})"


@kind("axes of a grid swapped", "host")
def grid_swapped(node: ast.AST) -> Iterator[str]:
    """`kernel[(a, b)](...)` becomes `kernel[(b, a)](...)`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript) and isinstance(node.func.slice, ast.Tuple):
        places = node.func.slice.elts
        if len(places) > 1:
            new = copy.deepcopy(node)
            assert isinstance(new.func, ast.Subscript)
            new.func.slice = ast.Tuple([places[1], places[0], *places[2:]], ast.Load())
            yield text(new)


@kind("another stride", "host")
def another_stride(node: ast.AST) -> Iterator[str]:
    """`x.stride(0)` becomes `x.stride(1)`, `x.shape[0]` becomes `x.shape[1]`, and the reverse."""
    if (call := called(node, "stride", "size")) and len(call.args) == 1 and number(call.args[0]) in (0, 1):
        yield f"{text(call.func)}({1 - int(number(call.args[0]) or 0)})"
    elif isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith(".shape") and number(node.slice) in (0, 1):
        yield f"{text(node.value)}[{1 - int(number(node.slice) or 0)}]"


def _block(node: ast.AST, change: Callable[[int], int]) -> Iterator[str]:
    """A launch with another size of its first block."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):
        for place, one in enumerate(node.keywords):
            if one.arg and one.arg.isupper() and isinstance(value := number(one.value), int) and value > 16:
                new = copy.copy(node)
                new.keywords = list(node.keywords)
                new.keywords[place] = ast.keyword(one.arg, ast.Constant(change(value)))
                yield text(new)
                return


@kind("block halved", "host")
def block_halved(node: ast.AST) -> Iterator[str]:
    """The first keyword of a launch in capitals that is a whole number above 16 is halved."""
    yield from _block(node, lambda value: value // 2)


@kind("block doubled", "host")
def block_doubled(node: ast.AST) -> Iterator[str]:
    """The first keyword of a launch in capitals that is a whole number above 16 is doubled."""
    yield from _block(node, lambda value: value * 2)


@kind("arguments swapped", "host")
def arguments_swapped(node: ast.AST) -> Iterator[str]:
    """Two neighbours among the arguments of a launch change places."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):
        for place in range(len(node.args) - 1):
            new = copy.copy(node)
            first, second = node.args[place : place + 2]
            if ast.dump(first) != ast.dump(second):
                new.args = [*node.args[:place], second, first, *node.args[place + 2 :]]
                yield text(new)


@kind("memory not cleared", "host")
def memory_not_cleared(node: ast.AST) -> Iterator[str]:
    """`torch.zeros` becomes `torch.empty`."""
    if call := called(node, "zeros"):
        yield renamed(call, "empty")
    elif call := called(node, "zeros_like"):
        yield renamed(call, "empty_like")


@kind("layout ignored", "host")
def layout_ignored(node: ast.AST) -> Iterator[str]:
    """`x.contiguous()` becomes x."""
    if (call := called(node, "contiguous")) and isinstance(call.func, ast.Attribute) and not call.args:
        yield text(call.func.value)


@kind("number of the host by 1 %", "host")
def host_number(node: ast.AST) -> Iterator[str]:
    """A fraction in the text becomes 1 % larger."""
    if isinstance(value := number(node), float) and value:
        yield repr(value * 1.01)


@kind("launch left out", "host")
def launch_left_out(node: ast.AST) -> Iterator[str]:
    """A kernel is not launched."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Subscript):
        yield "pass"
