"""Programs that stop before atomics: who runs when, and what a kernel's text becomes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from rlkernel.evaluator.cpu.turns import WORDS, Stops, functions_with_atomics, run_programs
from rlkernel.evaluator.program.schema import Function, Program


class Played:
    """A machine that remembers who entered and who left it."""

    def __init__(self) -> None:
        self.entered: list[int] = []
        self.left: list[int] = []

    def enter(self, program: int) -> None:
        self.entered.append(program)

    def leave(self) -> None:
        self.left.append(self.entered[-1])


def test_programs_that_do_not_stop_run_in_order() -> None:
    machine = Played()
    run_programs(lambda: None, range(5), machine, None)
    assert machine.entered == machine.left == [0, 1, 2, 3, 4]


def test_programs_that_wait_for_each_other_end() -> None:
    """Each waits for the next one, and the last for nobody: all must have begun."""
    machine = Played()
    ended: list[int] = []

    def started() -> Any:
        def run() -> Iterator[None]:
            me = machine.entered[-1]
            while me < 39 and me + 1 not in ended:
                yield
            ended.append(me)

        return run()

    run_programs(started, range(40), machine, 7)
    assert ended == machine.left == list(range(39, -1, -1))


def orders(seed: int) -> list[int]:
    machine = Played()

    def kernel() -> Iterator[None]:
        yield
        yield

    run_programs(kernel, range(12), machine, seed)
    return machine.entered


def test_the_order_is_the_seeds() -> None:
    assert orders(1) == orders(1) != orders(2)
    assert sorted(set(orders(1))) == list(range(12))
    assert len(orders(1)) == 12 * 3  # two stops, and the end


TEXT = """
def helper(p):
    return tl.atomic_add(p, 1)

def kernel(p):
    got = [helper(p)]
    while tl.atomic_cas(p, 3, 0) != 3:
        got.append(-1)
    chosen = choice(True, lambda: helper(p), lambda: 0)
    got.append(chosen)
    got.append((helper, abs)[0](p))
    ended.append((got, [abs(helper(q)) for q in (p,)]))
"""


class Language:
    """Atomics on one word."""

    word = 0

    def atomic_add(self, pointer: int, value: int) -> int:
        self.word += value
        return self.word - value

    def atomic_cas(self, pointer: int, expected: int, value: int) -> int:
        old = self.word
        self.word = value if old == expected else old
        return old


def test_a_kernel_stops_before_each_atomic_and_gets_what_it_would_have_got() -> None:
    ended: list[Any] = []
    names: dict[str, Any] = {
        "tl": Language(), "ended": ended, ".choice": lambda test, first, second: first() if test else second(),
        **WORDS,
    }  # fmt: skip
    tree = ast.parse(TEXT)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == "choice":
            node.id = ".choice"  # as `Branches` writes it
    exec(compile(ast.fix_missing_locations(Stops().visit(tree)), "kernel", "exec"), names)
    run = names["kernel"](0)
    for _ in range(3):
        next(run)
    assert names["tl"].word == 1  # helper's atomic is done, the loop's is next
    names["tl"].word = 2
    next(run)  # the loop's first turn
    names["tl"].word = 3
    assert list(run) and names["tl"].word == 3
    # helper saw 0; the loop failed once; the branch's helper saw 0 after the exchange, the tuple's 1, the comprehension's 2
    assert ended == [([0, -1, 0, 1], [2])]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("def kernel(p, f):\n    f(p)", {0, 1}), ("def kernel(p):\n    g = h\n    g(p)", {0, 1}),
        ("def kernel(p, f):\n    (f if p else f)(p)", {0, 1}), ("def kernel(p, f):\n    f.value(p)", {0, 1}),
        ("def kernel(p, f):\n    tl.sum(p)", {1}), ("def kernel(p, f):\n    abs(p)", {1}),
    ],
)  # fmt: skip
def test_a_function_that_calls_what_it_is_given_may_use_atomics_where_another_does(text: str, found: set[int]) -> None:
    atomic = Function("add", "def add(p):\n    tl.atomic_add(p, 1)", 1, {})
    program = Program((Function("kernel", text, 1, {}), atomic), (), (), {}, (), (), None)
    assert functions_with_atomics(program) == found
    assert functions_with_atomics(replace(program, functions=program.functions[:1])) == set()
