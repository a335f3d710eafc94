"""Programs of one launch that take turns: those of a kernel with atomics, each of which stops before every atomic.

On a GPU programs run at the same time. Where they meet in memory through atomics alone, the order of their atomics is all that
can matter, so a few programs are in flight at once, and who goes on is drawn. A lock is then really contended, a program that
waits for another one gets what it waits for, and an atomic that orders nothing is seen to order nothing (`races`).

A kernel's function becomes a generator that yields wherever it stops, and so does each function that it calls and that uses
atomics. Inside of a lambda or a comprehension nothing stops.
"""

from __future__ import annotations

import ast
import inspect
import random
from collections.abc import Callable, Generator, Iterable
from typing import Any, Protocol

from rlkernel.evaluator.program.kernel_text import canonical
from rlkernel.evaluator.program.schema import Function, Program
from rlkernel.evaluator.program.values import FunctionRef, LibraryRef

IN_FLIGHT = 4
"""Programs that have begun and not ended, unless all of these wait for others."""
START_ANOTHER = 1 / 8
"""The chance of one more, at each turn."""


def functions_with_atomics(program: Program) -> frozenset[int]:
    """The functions that use atomics, or call one that does. Where there are any, those that call a function that they were given
    are among them, because it may be one."""

    def uses(function: Function) -> bool:
        libraries = [value.name for value in function.bindings.values() if isinstance(value, LibraryRef)]
        return "atomic_" in canonical(function).text or any(name.startswith("atomic_") for name in libraries)

    found = {index for index, function in enumerate(program.functions) if uses(function)}
    if found:
        found |= {index for index, function in enumerate(program.functions) if _calls_what_it_is_given(function)}
    while True:
        more = {
            index for index, function in enumerate(program.functions)
            if any(isinstance(value, FunctionRef) and value.index in found for value in function.bindings.values())
        }  # fmt: skip
        if more <= found:
            return frozenset(found)
        found |= more


def _calls_what_it_is_given(function: Function) -> bool:
    """Whether a function calls a parameter, a variable, a constant or the result of an expression."""
    tree = canonical(function).tree
    own = {argument.arg for argument in ast.walk(tree.args) if isinstance(argument, ast.arg)}
    own |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    own |= {name for name, value in function.bindings.items() if not isinstance(value, (FunctionRef, LibraryRef))}
    called = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return any(one.id in own if isinstance(one, ast.Name) else _may_be_a_function(one) for one in called)


def _may_be_a_function(called: ast.expr) -> bool:
    """Whether what is called may be one of the Program's functions. What Triton's modules and tensors have is none."""
    if isinstance(called, ast.Name):
        return not called.id.startswith(".")
    return not isinstance(called, ast.Attribute) or called.attr == "value"


class Stops(ast.NodeTransformer):
    """A function's tree that stops before each atomic, at each turn of a `while`, and where a function that it calls stops."""

    _nested = False

    def _inside(self, node: Any) -> Any:
        before, self._nested = self._nested, True
        self.generic_visit(node)
        self._nested = before
        return node

    visit_Lambda = visit_ListComp = _inside

    def visit_While(self, node: ast.While) -> ast.AST:
        self.generic_visit(node)
        node.body.insert(0, ast.copy_location(ast.Expr(ast.Yield()), node))
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        made: ast.expr = node
        if _may_be_a_function(node.func):
            word = ".at_once" if self._nested else ".by_turns"
            made = ast.Call(ast.Name(word, ast.Load()), [node], [])
            made = made if self._nested else ast.YieldFrom(made)
        if not self._nested and not isinstance(made, ast.YieldFrom) and _is_atomic(node.func):
            made = ast.Subscript(ast.Tuple([ast.Yield(), node], ast.Load()), ast.Constant(1), ast.Load())
        return ast.copy_location(made, node)


def _is_atomic(called: ast.expr) -> bool:
    return isinstance(called, ast.Attribute) and called.attr.startswith("atomic_")


def _by_turns(made: Any) -> Generator[None, None, Any]:
    """What a call gives, which may have to be waited for. It stops once, because the call may be an atomic by another name."""
    yield
    return (yield from made) if inspect.isgenerator(made) else made


def _at_once(made: Any) -> Any:
    """What a call gives, without a stop."""
    while inspect.isgenerator(made):
        try:
            next(made)
        except StopIteration as end:
            return end.value
    return made


WORDS = {".by_turns": _by_turns, ".at_once": _at_once}
"""What the names mean that `Stops` writes, see `branches`."""


class Machine(Protocol):
    """Where programs run."""

    def enter(self, program: int) -> None:
        """From now on this program runs."""

    def leave(self) -> None:
        """The program that runs has ended."""


def run_programs(kernel: Callable[[], Any], numbers: Iterable[int], machine: Machine, seed: int | None) -> None:
    """Run each program to its end. `kernel` is called for each. The order of those that stop is drawn from `seed`; without a seed
    they do not stop."""
    if seed is None:
        for number in numbers:
            machine.enter(number)
            _at_once(kernel())
            machine.leave()
        return
    waiting = list(numbers)
    drawn = random.Random(seed)
    running: list[tuple[int, Any]] = []
    while waiting or running:
        if waiting and (len(running) < IN_FLIGHT or drawn.random() < START_ANOTHER):
            number = waiting.pop(drawn.randrange(len(waiting)))
            running.append((number, kernel()))
        chosen = drawn.randrange(len(running))
        number, run = running[chosen]
        machine.enter(number)
        if next(run, run) is run:
            running.pop(chosen)
            machine.leave()
