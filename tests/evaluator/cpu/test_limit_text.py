"""What a kernel's text holds against fixed numbers, and how it says so."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from rlkernel.evaluator.cpu import limit_text
from rlkernel.evaluator.cpu.limit_text import alone, held
from rlkernel.evaluator.cpu.limits import LEFT, ORDER, RIGHT, Limits


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("place >> 10, a < 8", {("rshift", "10"), ("order", "8"), ("order", "a")}),
        ("place % 1024 + place % 1024", {("mod", "1024")}),
        ("place // 32 + place % 32", set()),
        ("(place >> 5) + (place & 31)", set()),
        ("(place >> 5) + (place & 15)", {("rshift", "5"), ("and_", "15")}),
        ("(place // 64) * 64 + (place & 63)", set()),
        ("((place >> 6) << 6) | (place & 63)", set()),
        ("place - place % 16 + 15 - (place & 15)", set()),
        ("place ^ ((place >> 7) & 31)", set()),
        ("place // heads + (n == size)", set()),
        ("(n == 4096) + min(pid // GROUP, GROUP)", {("eq", "4096")}),
    ],
)
def test_what_parts_numbers_is_a_number_that_stands_there_alone(text: str, found: set[tuple[str, str]]) -> None:
    definition = ast.parse(f"def function(a, place, n):\n    return {text}").body[0]
    assert isinstance(definition, ast.FunctionDef)
    assert {one for one in alone(definition) if one[1] not in ("place", "n", "pid")} == found


def run(text: str, moved: Any, *given: Any) -> Any:
    """What a function of `a` and `b` gives where some of the numbers that it compares are others."""

    class Machine:
        dry = last_turn = False
        limits = Limits()

    Machine.limits.moved = moved
    definition = ast.parse(f"def function(a, b):\n    return {text}").body[0]
    assert isinstance(definition, ast.FunctionDef)
    names: dict[str, Any] = {**limit_text.words(Machine()), "min": min}
    module = ast.Module([held(definition, "kernel", alone(definition))], [])
    exec(compile(ast.fix_missing_locations(module), "kernel", "exec"), names)
    return names["function"](*given)


def test_each_comparison_and_minimum_of_a_kernel_has_its_own_number() -> None:
    text = "a < 8, min(a, 8), a >= 9 if a + 0 != b else a == b"
    assert run(text, {}, 5, 6) == (True, 5, False)
    assert run(text, {("kernel", 1, RIGHT, ORDER): (False, 4)}, 5, 6) == (False, 5, False)
    assert run(text, {("kernel", 2, RIGHT, ORDER): (False, 4)}, 5, 6) == (True, 4, False)
    moved = {("kernel", 4, RIGHT, ORDER): (False, 4), ("other", 1, RIGHT, ORDER): (False, 4)}
    assert run(text, moved, 5, 6) == (True, 5, True)
    assert run("b > a", {("kernel", 1, LEFT | RIGHT, ORDER): (True, 4)}, 5, 6) is False


def test_a_number_that_is_computed_with_besides_is_left_alone() -> None:
    """Half of it would be another one than the other half."""
    assert run(
        "(min(a, 4), b * 4)", {("kernel", 1, LEFT | RIGHT, ORDER): (False, 2), ("kernel", 1, LEFT, ORDER): (True, 2)}, 5, 6
    ) == (2, 24)
    assert run("(min(a, 4), b * 4)", {("kernel", 1, RIGHT, ORDER): (False, 2)}, 5, 6) == (4, 24)
    assert run("(min(a, b), b * 8)", {("kernel", 1, RIGHT, ORDER): (False, 2)}, 5, 6) == (5, 48)
