"""A kernel's text written anew: what is left out of it, and which line of the candidate each statement came from."""

from __future__ import annotations

import pytest

from rlkernel.evaluator.program.kernel_text import canonical
from rlkernel.evaluator.program.schema import Function


def text_of(*body: str) -> str:
    source = "def k(x, n: tl.constexpr):\n" + "".join(f"    {line}\n" for line in body)
    return canonical(Function("k", source, 3, {})).text


@pytest.mark.parametrize("call", ["print('x', x)", "tl.device_print('x', x)", "device_print('x', x)"])
def test_prints_of_the_device_are_left_out(call: str) -> None:
    assert text_of(call, "tl.store(x, n)") == "def k(x, n: tl.constexpr):\n    tl.store(x, n)\n"
    assert text_of("if n:", "    " + call, "else:", "    " + call) == (
        "def k(x, n: tl.constexpr):\n    if n:\n        pass\n    else:\n        pass\n"
    )


def test_a_value_that_is_printed_is_still_computed_where_it_is_used() -> None:
    assert "y = tl.load(x)" in text_of("y = tl.load(x)", "tl.device_print('y', y)", "tl.store(x, y)")


def test_lines_are_those_of_the_candidate() -> None:
    source = "def k(x):\n    '''A text.'''\n    print(x)\n    tl.store(x, 1)\n"
    kernel = canonical(Function("k", source, 10, {}))
    assert kernel.lines == {1: 10, 2: 13}
