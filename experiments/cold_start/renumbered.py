"""Copies of conversations with other sizes, so that a policy learns to read sizes from the problem.

The tasks of a corpus share a few dozen sizes, and each task stands in several conversations. A policy that sees no others knows
the sizes of a task by heart and writes them for every task like it. In a copy the lines `NAME = size` of the problem and of all
answers have another size. It has the same next power of two and is divisible by the powers of two (up to 256) that divide the old
one, so that block sizes and masks in the answers stay as right or wrong as they are. Verdicts, times and the floor in the copy
are those of the sizes that were judged.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from envs.teacher.corpus import Conversation
from envs.world.suite import reserved_sizes

LINE = re.compile(r"^([A-Z]+) = (\d+)$", re.MULTILINE)
"""A size as problems and answers state it."""
LEAST = 128
"""Smaller sizes stay: heads, batches and windows, of which a kernel's text may hold the exact number."""
ALIGNED = 256


def copies(conversations: Sequence[Conversation], count: int, seed: int) -> Iterator[Conversation]:
    """Yield each conversation `count` times, first as it is and then with sizes drawn from `seed`."""
    yield from conversations
    rng = random.Random(f"renumbered {seed}")
    for _ in range(count - 1):
        for conversation in conversations:
            prompt, *answers = resized([conversation.prompt, *(exchange.answer for exchange in conversation.exchanges)], rng)
            pairs = zip(conversation.exchanges, answers, strict=True)
            exchanges = tuple(replace(exchange, answer=answer) for exchange, answer in pairs)
            yield replace(conversation, prompt=prompt, exchanges=exchanges)


def resized(texts: Sequence[str], rng: random.Random) -> list[str]:
    """A problem's text and answers to it, with other sizes. Sizes that an answer has got wrong stay as they are."""
    sizes = {line: f"{line[0]} = {_size(int(line[1]), rng)}" for line in LINE.findall(texts[0])}
    return [LINE.sub(lambda line: sizes.get((line[1], line[2]), line[0]), text) for text in texts]


def _size(size: int, rng: random.Random) -> int:
    """Another size with the same next power of two and the same powers of two as divisors, up to `ALIGNED`; none that validation
    keeps for itself.

    >>> _size(64, random.Random(0))
    64
    >>> sorted({_size(1024, random.Random(k)) for k in range(40)})
    [768, 1024]
    """
    if size < LEAST:
        return size
    below, step = 1 << ((size - 1).bit_length() - 1), math.gcd(size, ALIGNED)
    found = step * rng.randint(below // step + 1, 2 * below // step)
    return size if found in reserved_sizes() else found
