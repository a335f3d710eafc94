"""Functions that run while a kernel is compiled: bounded by counting, checked as a kernel's text is, and never launched."""

from __future__ import annotations

from typing import Any

import pytest

from rlkernel.evaluator.program.constexpr_functions import TooMuch, interpreted
from rlkernel.evaluator.program.encoding import from_json, to_json
from rlkernel.evaluator.program.kernel_source import KernelSet
from rlkernel.evaluator.program.kernel_text import KernelRejected
from rlkernel.evaluator.program.schema import Config, Function, Launch, Program
from rlkernel.evaluator.program.values import FunctionRef, MalformedProgram, ModuleRef

TL = {"tl": ModuleRef("triton.language"), "math": ModuleRef("math")}


def build(*lines: str, **bindings: Any) -> Any:
    source = "def f(n):\n" + "".join(f"    {line}\n" for line in lines)
    function = Function("f", source, 10, TL | bindings, (), True)
    return KernelSet(Program((function,), (), (), {}, (), (), None), lambda fn, f: fn).get(0)


def test_numbers_are_computed_as_python_computes_them() -> None:
    halves = build("found = []", "for k in range(n):", "    found = found + [k // 2]", "return sum(found) + math.ceil(n / 2)")
    assert halves(7) == 0 + 0 + 1 + 1 + 2 + 2 + 3 + 4
    assert build("return 1 if n < 2 else n * f(n - 1)", f=FunctionRef(0))(5) == 120
    assert build("n *= 3", "return [k * n for k in range(3)]")(2) == [0, 6, 12]


@pytest.mark.parametrize(
    "lines",
    [
        ("while True:", "    pass"),
        ("for a in range(10 ** 9):", "    pass"),
        ("return f(n) + f(n)",),
        ("return n ** n ** n",),
        ("return 1 << (1 << 40)",),
        ("return '%999999999d' % n",),
        ("for k in range(64):", "    n *= n", "return n"),
        ("a = 'a'", "for k in range(64):", "    a += a", "return a"),
        ("return [0] * 10 ** 9",),
        ("return sum(range(10 ** 12))",),
        ("return len([k for k in range(10 ** 9)])",),
    ],
)
def test_what_takes_too_much_is_counted(lines: tuple[str, ...]) -> None:
    with pytest.raises((TooMuch, RecursionError)):
        build(*lines, f=FunctionRef(0))(9)


@pytest.mark.parametrize(
    "line",
    [
        "import os",
        "return n.__class__",
        "return math.factorial(n)",
        "return open(n)",
        "return tl.core.builtins",
        "return (lambda: n)()",
    ],
)
def test_no_more_than_a_kernel_may_use(line: str) -> None:
    with pytest.raises(KernelRejected):
        build(line)


def test_an_interpreted_kernel_calls_it_once_for_the_same_constants() -> None:
    calls = []
    function = interpreted(lambda n: calls.append(n) or 2 * n)
    assert [function(4), function(4), function(n=5)] == [8, 8, 10]
    assert calls == [4, 5]


def test_it_is_launched_by_nobody() -> None:
    function = Function("f", "def f(n):\n    return n\n", 1, {}, (), True)
    launch = Launch(0, {}, (Config({}, {}, (1, 1, 1), {}, {}, ()),), 1)
    with pytest.raises(MalformedProgram, match="no kernel"):
        from_json(to_json(Program((function,), (), (), {}, (), (launch,), None)))
