"""Which rows go through the model together, and in which process."""

from __future__ import annotations

from collections.abc import Sequence


def micro_batches(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """As few micro-batches as possible, of about equal numbers of tokens, so that none takes much more memory than another.

    A micro-batch has at most `budget` tokens, or is a single longer row. The longest row is in the first one: what does not fit
    fails at once.

    >>> micro_batches([3, 9, 4, 3], 10)
    [[1], [2, 0, 3]]
    """
    number = max(1, -(-sum(lengths) // max(budget, 1)))
    while number < len(lengths):
        found = deal(lengths, number)
        if all(len(rows) == 1 or sum(lengths[row] for row in rows) <= budget for rows in found):
            return found
        number += 1
    return deal(lengths, len(lengths))


def deal(lengths: Sequence[int], parts: int) -> list[list[int]]:
    """Rows for each of so many parts, none where there are too few: the longest first, to the part that has the fewest tokens so
    far. Ties keep their order.

    >>> deal([3, 9, 4, 3], 2)
    [[1], [2, 0, 3]]
    """
    found: list[list[int]] = [[] for _ in range(parts)]
    tokens = [0] * parts
    for row in sorted(range(len(lengths)), key=lambda row: -lengths[row]):
        fewest = min(range(parts), key=tokens.__getitem__)
        found[fewest].append(row)
        tokens[fewest] += lengths[row]
    return found
