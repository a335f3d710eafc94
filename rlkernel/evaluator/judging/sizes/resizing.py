"""Arithmetic of sizes, by the names of constants: halved, doubled, divided and compared ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Sizes = dict[str, Any]
"""Values of constants by name: numbers, and tuples and lists of them."""


def reduced(sizes: Mapping[str, Any], limit: int) -> Sizes:
    """The sizes above `limit`, halved until they are not. Divisors stay divisors, as far as halving goes.

    >>> reduced({"N": 96, "M": 24, "shape": (100, 4)}, 32)
    {'N': 24, 'shape': (25, 4)}
    """
    found = {name: _halved(value, limit) for name, value in sizes.items()}
    return {name: value for name, value in found.items() if value != sizes[name]}


def apart(sizes: Mapping[str, Any], full: Mapping[str, Any], fixed: Iterable[int] = ()) -> Sizes:
    """Reduced sizes, of which no two are equal that differ at full size: the smaller one there is halved further. Otherwise a
    kernel that takes one for the other would be right. `full`: the sizes that may be reduced, at full size; `fixed`: numbers of
    groups and the like, which they differ from as well.

    >>> apart({"M": 256, "N": 256}, {"M": 1024, "N": 8192, "K": 64})
    {'M': 128, 'N': 256}
    >>> apart({"shape": (32, 32), "groups": 4}, {"shape": (512, 128)})
    {'shape': (32, 16), 'groups': 4}
    >>> apart({"features": 16}, {"features": 512}, fixed=(16,))
    {'features': 8}
    """
    full = {name: value for name, value in full.items() if not is_nested(value)}
    found = {name: list(numbers_of(sizes.get(name, value))) for name, value in full.items()}
    places = [(value, name, place) for name, size in full.items() for place, value in enumerate(numbers_of(size))]
    taken = {number: number for number in fixed}
    for value, name, place in sorted(places, key=lambda one: -one[0]):
        now = found[name][place]
        while now > 1 and taken.get(now, value) != value:
            now //= 2
        taken.setdefault(now, value)
        found[name][place] = now
    made = {
        name: type(value)(found[name]) if isinstance(value, (tuple, list)) else found[name][0] for name, value in full.items()
    }
    return dict(sizes) | {name: value for name, value in made.items() if value != full[name]}


def doubled(sizes: Mapping[str, Any], full: Mapping[str, Any]) -> Sizes:
    """Reduced sizes times two, up to the full ones.

    >>> doubled({"M": 128, "shape": (32, 16)}, {"M": 1024, "shape": (512, 16)})
    {'M': 256, 'shape': (64, 16)}
    """

    def twice(value: Any, whole: Any) -> Any:
        if isinstance(value, (tuple, list)):
            return type(value)(map(twice, value, whole))
        return min(2 * value, whole)

    return {name: twice(value, full[name]) if name in full else value for name, value in sizes.items()}


def twos(sizes: Mapping[str, Any], full: Mapping[str, Any]) -> Sizes:
    """Reduced sizes with 2 for each number that has become 1.

    >>> twos({"M": 1, "shape": (1, 1, 8)}, {"M": 512, "shape": (4, 1, 64)})
    {'M': 2, 'shape': (2, 1, 8)}
    """

    def two(value: Any, whole: Any) -> Any:
        if isinstance(value, (tuple, list)):
            return type(value)(map(two, value, whole))
        return 2 if value == 1 and whole > 1 else value

    return {name: two(value, full[name]) if name in full else value for name, value in sizes.items()}


def numbers_of(size: Any) -> tuple[int, ...]:
    """The numbers of a size, from left to right.

    >>> numbers_of(4), numbers_of((3, [4, 5]))
    ((4,), (3, 4, 5))
    """
    return tuple(number for item in size for number in numbers_of(item)) if isinstance(size, (tuple, list)) else (size,)


def is_nested(size: Any) -> bool:
    """Whether a size has lists in a list.

    >>> is_nested((3, 4)), is_nested((3, [4]))
    (False, True)
    """
    return isinstance(size, (tuple, list)) and any(isinstance(item, (tuple, list)) for item in size)


def is_longer(sizes: Mapping[str, Any], others: Mapping[str, Any]) -> bool:
    """Whether a size is larger than the other of its name. A name that is not among reduced sizes has its full size.

    >>> is_longer({"M": 512, "N": 16}, {"M": 128, "N": 32}), is_longer({"M": 8, "N": 16}, {"M": 8}), is_longer({"M": 8}, {"N": 4})
    (True, False, True)
    """
    pairs = [(numbers_of(sizes[name]), numbers_of(value)) for name, value in others.items() if name in sizes]
    return len(pairs) < len(others) or any(a > b for mine, own in pairs for a, b in zip(mine, own, strict=False))


def shortest(sizes: Mapping[str, Any], others: Mapping[str, Any]) -> Sizes:
    """The smaller of each pair of reduced sizes, number by number. A name that is not among them has its full size.

    >>> shortest({"M": 512, "image": (64, 8)}, {"M": 128, "image": (32, 16), "N": 4})
    {'M': 128, 'image': (32, 8), 'N': 4}
    >>> shortest({"M": 512, "image": (64, 8)}, {"M": (128, 2), "image": (4, 4, 4)})
    {'M': 512, 'image': (64, 8)}
    """
    return {**others, **{name: map_numbers(min, value, others.get(name, value)) for name, value in sizes.items()}}


def map_numbers(function: Any, value: Any, other: Any) -> Any:
    """A function of a size's numbers, each with that of another size in its place, or with one number; the size as it is where
    the other one has another nesting."""
    if isinstance(value, (tuple, list)):
        others = other if isinstance(other, (tuple, list)) else [other] * len(value)
        if len(others) != len(value):
            return value
        return type(value)(map_numbers(function, a, b) for a, b in zip(value, others, strict=True))
    return value if isinstance(other, (tuple, list)) else function(value, other)


def divided(sizes: Mapping[str, Any], factor: int) -> Sizes:
    """The sizes divided by one number, at least 1 each, so that they keep their ratios.

    >>> divided({"features": 512, "groups": 8, "channels": 3}, 4)
    {'features': 128, 'groups': 2, 'channels': 1}
    """
    found = {name: _divided(value, factor) for name, value in sizes.items()}
    return {name: value for name, value in found.items() if value != sizes[name]}


def _divided(value: Any, factor: int) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(_divided(item, factor) for item in value)
    return max(1, value // factor)


def largest_of(value: Any) -> int:
    """The largest number of a size."""
    return max(map(largest_of, value)) if isinstance(value, (tuple, list)) else int(value)


def _halved(value: Any, limit: int) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(_halved(item, limit) for item in value)
    while value > limit:
        value //= 2
    return value
