"""Bounds on what compiling a kernel takes, counted and not timed, so that the verdict is the same on every machine.

Triton's front end walks a kernel's tree, and walks it again for each iteration of `tl.static_range` and for each call with other
constants. It computes constants in Python, where `9 ** 9 ** 9` has 370 million digits. What it leaves is inlined and becomes
instructions, so helpers that call each other twice grow exponentially. Instructions are those of one thread: a tile of 16 rows of
10,000 numbers in 4 warps gives each thread 2,048 numbers, and LLVM and ptxas minutes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from triton.backends.nvidia.compiler import CUDABackend
from triton.compiler import ASTSource
from triton.compiler.code_generator import CodeGenerator
from triton.compiler.errors import CompilationError
from triton.language import constexpr

from rlkernel.evaluator.program.constexpr_functions import MAX_BITS, growth

MAX_NODES = 60_000
"""Nodes of syntax trees that the front end may visit for one kernel. A fused attention takes about a thousand, and 1,024 turns of
`tl.static_range` with a load and a store 47,000."""
MAX_INSTRUCTIONS = 40_000
"""Operations of one thread in a kernel's intermediate code, when Triton has inlined all calls and simplified it. LLVM takes 7 s
for half of it."""
MAX_UNFOLDED = 5 * MAX_INSTRUCTIONS
"""The same before that. Triton's own sort of 2,048 numbers leaves half of it, and less in some versions."""
MAX_LINES = 60_000
"""Lines of a kernel's PTX. ptxas takes 1.3 s for 14,000, 7 s for 28,000 and 24 s for 56,000."""
_SHAPE = re.compile(r"tensor<((?:\d+x)+)")
_NAME = r'@("[^"]+"|[^"(\s]+)'
"""A function's name. Triton 3.6 has those of helpers in quotes, with constants in brackets: `@"h__i32__(1,)cconstexpr_20_"`."""
_FUNCTION = re.compile(rf"^\s*tt\.func (?:public |private |nested )?{_NAME}")
_CALL = re.compile(rf"tt\.call {_NAME}")


class TooMuch(Exception):
    """A kernel becomes more instructions than it may."""


@contextmanager
def bounded() -> Iterator[None]:
    """Compilations inside raise CompilationError or TooMuch where they take more than they may."""
    visit, combine = CodeGenerator.visit, CodeGenerator._apply_binary_method
    simplify, assemble = CUDABackend.make_ttir, CUDABackend.make_cubin
    visited = 0

    def counted(self: Any, node: Any) -> Any:
        nonlocal visited
        visited += 1
        if visited > MAX_NODES:
            raise CompilationError(self.jit_fn.src, node, f"the kernel unrolls to more than {MAX_NODES} operations")
        return visit(self, node)

    def checked(self: Any, node: Any, method: str, lhs: Any, rhs: Any) -> Any:
        if growth(method, _plain(lhs), _plain(rhs)) > MAX_BITS:
            raise CompilationError(self.jit_fn.src, node, f"a constant of more than {MAX_BITS} bits or items")
        return combine(self, node, method, lhs, rhs)

    def simplified(module: Any, metadata: Any, options: Any, *rest: Any) -> Any:
        found = simplify(module, metadata, options, *rest)
        if instructions(str(found), 32 * options.num_warps) > MAX_INSTRUCTIONS:
            raise TooMuch(unfolds(MAX_INSTRUCTIONS))
        return found

    def assembled(self: Any, source: str, *args: Any, **kwargs: Any) -> Any:
        if (lines := source.count("\n")) > MAX_LINES:
            raise TooMuch(f"{lines} lines of PTX, of at most {MAX_LINES}: take smaller tiles or more warps")
        return assemble(self, source, *args, **kwargs)

    with (
        mock.patch.multiple(CodeGenerator, visit=counted, _apply_binary_method=checked),
        mock.patch.multiple(CUDABackend, make_ttir=staticmethod(simplified), make_cubin=assembled),
    ):
        yield


def _plain(value: Any) -> Any:
    """A constant's value; None for what is computed on the device."""
    if isinstance(value, constexpr):  # a tuple of Triton's answers any attribute by its fields' names, or raises
        value = value.value
    return value if isinstance(value, (bool, int, float, str, tuple)) or hasattr(value, "values") else None


class BoundedSource(ASTSource):  # type: ignore[misc]
    """A kernel's source, whose intermediate code is refused where it would become too many instructions."""

    warps = 4

    def make_ir(self, *args: Any, **kwargs: Any) -> Any:
        module = super().make_ir(*args, **kwargs)
        if instructions(str(module), 32 * self.warps) > MAX_UNFOLDED:
            raise CompilationError(self.fn.src, None, unfolds(MAX_UNFOLDED))
        return module


def unfolds(bound: int) -> str:
    """What a kernel is refused with that becomes too many operations."""
    return f"more than {bound} operations per thread with all calls unfolded: take smaller tiles or more warps"


def instructions(code: str, threads: int) -> int:
    """What each of a program's threads does in Triton's intermediate code, loops once, every call replaced by what it calls:
    elements of each operation's largest tensor over threads, and at least one. The public function counts."""
    own: dict[str, int] = {}
    calls: dict[str, list[str]] = {}
    name = first = ""
    for line in code.splitlines():
        start = _FUNCTION.match(line)
        if start:
            name = start.group(1)
            own[name], calls[name] = 0, []
            first = name if "public" in line else first or name
        elif name:
            sizes = (math.prod(map(int, shape.split("x")[:-1])) for shape in _SHAPE.findall(line))
            own[name] += max(1, max(sizes, default=1) // threads)
            calls[name] += _CALL.findall(line)
    totals: dict[str, int] = {}

    def total(function: str, open_calls: frozenset[str]) -> int:
        if function not in own or function in open_calls:
            return 0
        if function not in totals:
            totals[function] = own[function] + sum(total(callee, open_calls | {function}) for callee in calls[function])
        return totals[function]

    return total(first, frozenset())
