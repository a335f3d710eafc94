"""Numbers that host code holds sizes against."""

from __future__ import annotations

import pytest

from rlkernel.evaluator.judging.sizes.host_limits import HostLimits, limited

KNOWN = {4096: (16,), 8192: (64,), 4096 * 8192: (16 * 64,)}


def numbers(text: str) -> list[float]:
    _, found = limited(f"import torch\n{text}\n", KNOWN)
    return [] if found is None else list(found.numbers.values())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("turns = 30 if x.numel() < 1000000 else 1", [1000000]),
        ("if x.numel() > 10**6: y()", [1000000]),
        ("y = x.numel() >= 1e6", [1e6]),
        ("LIMIT = 70000\ny = n > LIMIT", [70000]),
        ("y = min(n, 70000)", [70000]),
        ("y = min(n, 1024)", [1024]),  # perhaps a block
        ("y = max(n, 1024)", []),
        ("y = min(n, 16)", []),
        ("y = n > 1024", [1024]),
        ("y = n > 4096", [4096]),  # a size
        ("y = n == 4096", [4096]),
        ("y = tuple(x.shape) == (4096, 8192)", [4096, 8192]),
        ("y = n in {8192, 5000}", [8192]),
        ("y = {8192: 4}.get(n, 1)", [8192]),
        ("WIDTH = 8192\ny = n == 8192", []),
        ("WIDTH = 8192\ny = WIDTH > 1000", [1000]),
        ("y = n > 8", []),
        ("y = n == 70000", []),
        ("assert n < 70000", []),
        ("num_warps = 8 if n > 70000 else 4", []),
        ("k[grid](x, num_warps=8 if n > 70000 else 4)", []),
        ("if n > 70000:\n    num_warps = 8\nelse:\n    num_warps = 4", []),
        ("if n > 70000:\n    num_warps = 8\n    turns = 1", [70000]),
        ("@triton.jit\ndef k(n):\n    return n < 70000", []),
        ("@triton.heuristics({'S': lambda args: args['n'] < 70000})\n@triton.jit\ndef k(n, S):\n    return n < 80000", [70000]),
        ("y = f'{n < 70000}'", []),
        ("y = n < 10**400", []),
        ("k[(min(132, tiles),)](x, NUM_SMS=132)", []),
        ("SMS = 132\nk[(min(SMS, tiles),)](x, NUM_SMS=SMS)", [132]),
        ("y = n > 70000 or m > 70000", [70000]),
        ("y = n // 70000", [70000]),
        ("y = 7e7 / n", [7e7]),
        ("MOST = 70000\ny = n // MOST", []),  # rather a block
        ("y = n // 4096", []),
        ("y = n.bit_length() > 22", [22]),
        ("y = min(n.bit_length() - 1, 9)", [9]),
        ("y = 1 << min((n - 1).bit_length() + 1, 9)", [9]),
        ("y = min(9, n.bit_length() - m)", []),
        ("y = int(math.log2(n)) < 21.5", [21.5]),
        ("y = n >> 23", [23]),
        ("y = 1 << 23", []),
        ("num_warps = 8 if n.bit_length() > 22 else 4", []),
        ("@triton.jit\ndef k(n):\n    return n >> 23", []),
        ("y = (", []),
    ],
)
def test_which_numbers_are_held_against_sizes(text: str, found: list[float]) -> None:
    assert numbers(text) == found


def test_each_is_as_much_smaller_as_the_largest_tensor_is() -> None:
    """No size is smaller by more, so that what lies above the number at full shape lies above it there."""
    found = HostLimits({"A": 1000000, "B": 1e6, "C": 40}).at(KNOWN)
    assert found == {"A": [1000000, 30], "B": [1e6, 30.0], "C": [40, 1]}
    assert type(found["B"][1]) is float


def test_what_a_logarithm_is_held_against_is_less_by_the_logarithm() -> None:
    _, found = limited("import torch\ny = n.bit_length() > 23\n", KNOWN)
    assert found is not None and list(found.at(KNOWN).values()) == [[23, 23 - 15]]
    assert HostLimits({"A": 7.0}, {"A": 10.0}).at(KNOWN) == {"A": [7.0, 2.0]}
    assert HostLimits({"A": 3}, {"A": 2.0}).at(KNOWN) == {"A": [3, 0]}


def test_a_size_that_is_asked_for_becomes_the_one_that_stands_for_it() -> None:
    _, found = limited("import torch\ny = n == 4096 or m > 8192\n", KNOWN)
    assert found is not None and sorted(found.at(KNOWN).values()) == [[4096, 16], [8192, 1]]


def test_each_way_to_raise_some_of_them_is_tried() -> None:
    """One clause of `n > A or n > B` alone decides nothing where the other one does, too."""
    found = HostLimits({"A": 40, "B": 1e6}).beyond()
    assert [sorted(some) for some in found] == [["A"], ["B"], ["A", "B"]]
    assert all(large > 1 << 60 for some in found for _, large in some.values())
    assert HostLimits(dict.fromkeys("ABCD", 40)).beyond() == []


def test_what_may_be_a_block_stays_a_power_of_two_and_is_smaller_as_sizes_not_far_above_it_are() -> None:
    """Of 1,024 rows that are 64, and 65,536 that are 16, a block of 256 is a part of the former."""
    _, found = limited("import torch\ny = min(n, 256)\n", KNOWN)
    assert found is not None and set(found.blocks) == set(found.numbers)
    assert list(found.at({1024: (80,), 65536: (16,)}).values()) == [[256, 16]]
    assert list(found.at({65536: (1024,)}).values()) == [[256, 4]], "else as the largest tensor is"
    assert not found.without(*found.numbers).numbers and found.alone(*found.numbers) == found


def test_what_may_be_made_of_blocks_is_none_shorter_than_a_power_of_two_that_stays() -> None:
    """A part of 1,024 that is read 32 at a time is no part any more where it is 2; 64 is the most of something, too."""
    _, found = limited("import torch\npart, wide, block = min(n, 1024), min(m, 64), 32\n", KNOWN)
    assert found is not None and sorted(found.blocks.values()) == [32, 32]
    part = next(name for name, value in found.numbers.items() if value == 1024)
    assert [some.at(KNOWN)[part][1] for some in found.halved(part, KNOWN)] == [512, 256, 128, 64, 32]
