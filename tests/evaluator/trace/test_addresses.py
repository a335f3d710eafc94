"""Of an address no more is known than its alignment: host code may ask for that, and compare addresses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlkernel.evaluator.trace.addresses import ALIGNMENT, Address
from rlkernel.evaluator.trace.host_numbers import Untraceable

AT = Address(7 * ALIGNMENT + 4)


def test_what_an_alignment_says_is_known() -> None:
    assert [AT % 16, AT % ALIGNMENT, AT & 15, 15 & AT, (AT + 12) % 16, (AT - 4) % 16] == [4, 4, 4, 4, 0, 0]
    assert AT + 12 - AT == 12
    assert {AT: 1}[Address(int(AT))] == 1


@pytest.mark.parametrize(
    "asked",
    [
        lambda at: at % 4096, lambda at: at % 48, lambda at: (at + 512) % 1024, lambda at: at & 4095, lambda at: at & ~4096,
        lambda at: at // 512 % 2, lambda at: at >> 10, lambda at: at ^ 4096, lambda at: at / 2, lambda at: (at & -16) % 1024,
        lambda at: (at >> 4) % 64, lambda at: 1 << at, lambda at: at * at % 2, lambda at: 4096 % at,
    ],
)  # fmt: skip
def test_where_an_allocator_puts_a_tensor_is_not(asked: Callable[[Address], object]) -> None:
    with pytest.raises(Untraceable, match="nothing is known but that it is a multiple of 512"):
        asked(AT)


OPERATIONS: dict[str, Callable[[Any, int], Any]] = {
    "%": lambda at, n: at % n, "&": lambda at, n: at & n, "& ~": lambda at, n: at & ~n, "|": lambda at, n: at | n,
    "^": lambda at, n: at ^ n, "+": lambda at, n: at + n, "-": lambda at, n: at - n, "n -": lambda at, n: n - at,
    "*": lambda at, n: at * n, "//": lambda at, n: at // n, ">>": lambda at, n: at >> n % 12, "<<": lambda at, n: at << n % 12,
    "- at": lambda at, n: -at, "~ at": lambda at, n: ~at,
}  # fmt: skip
NUMBERS = st.sampled_from([1, 2, 3, 7, 8, 15, 16, 31, 63, 64, 127, 128, 255, 256, 511, 512, 1023, 4096])


@given(st.lists(st.tuples(st.sampled_from(sorted(OPERATIONS)), NUMBERS), min_size=1, max_size=5), st.integers(0, 511))
def test_what_is_known_is_the_same_wherever_a_tensor_lies(steps: list[tuple[str, int]], offset: int) -> None:
    """Nobody knows, or every place in memory gives the same number, or what differs from place to place is an address still."""
    found = []
    for place in (1 << 35, (1 << 35) + 7, 3, 0):
        value: Any = Address(place * ALIGNMENT + offset)
        plain = place * ALIGNMENT + offset
        try:
            for name, number in steps:
                value, plain = OPERATIONS[name](value, number), OPERATIONS[name](plain, number)
        except Untraceable:
            found.append(None)
            continue
        assert value == plain
        found.append(value)
    assert len({value is None for value in found}) == 1
    if not isinstance(found[0], Address):
        assert len(set(found)) == 1
    elif found[0] is not None:
        assert len({int(value) % value.modulus for value in found}) == 1


def test_rounded_up_to_an_alignment_as_host_code_does() -> None:
    """The three ways to write it."""
    ways = [(AT + 15) & ~15, (AT + 15) // 16 * 16, AT + -AT % 16]
    assert [int(way) for way in ways] == [7 * ALIGNMENT + 16] * 3
    assert [way % 16 for way in ways] == [0, 0, 0]
    assert all(isinstance(way, Address) for way in ways)
