"""Of an address no more is known than its alignment: host code may ask for that, and compare addresses."""

from __future__ import annotations

from collections.abc import Callable

import pytest

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
        lambda at: at % 4096, lambda at: at % 48, lambda at: (at + 512) % 1024, lambda at: at & 4095, lambda at: at & -16,
        lambda at: at // 512, lambda at: at >> 9, lambda at: at ^ 1, lambda at: at / 2,
    ],
)  # fmt: skip
def test_where_an_allocator_puts_a_tensor_is_not(asked: Callable[[Address], object]) -> None:
    with pytest.raises(Untraceable, match="nothing is known but that it is a multiple of 512"):
        asked(AT)
