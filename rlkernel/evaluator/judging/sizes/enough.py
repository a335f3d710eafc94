"""Sizes at which what was too short to be judged should be long enough.

Either those of the full shape, of which a batch is halved as often as all that is short bears it: where it counts what a module
works on, each time leaves loops and grids at least half as long. Or, where these are much work, each size halved so often: that
is long enough where no loop goes over two sizes at once. Nothing is tried: whoever waits for a verdict decides whether to.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from rlkernel.evaluator.judging.sizes.constants import named_sizes
from rlkernel.evaluator.judging.sizes.made_inputs import batch_names
from rlkernel.evaluator.judging.sizes.resizing import Sizes, map_numbers, numbers_of


def strangers(source: str, compared: Sizes) -> list[str]:
    """Those of the sizes at which results were compared that are no constants of the file, which `SMALL` cannot name.

    >>> strangers("N = 4096\\nnum_layers = 8\\n", {"N": 64, "num_layers": 2, "SIZE_96": 12})
    ['SIZE_96']
    """
    return [name for name in compared if name not in named_sizes(source)]


def long_enough(source: str, compared: Sizes, halvings: int) -> tuple[Sizes, int]:
    """The sizes of which only the batch is halved, and by how much they are smaller in all than the full shape. None may be a
    stranger. halvings: how often all that is short may be halved.

    >>> file = "N = 4096\\nB = 16\\ndef get_inputs():\\n    return [torch.rand(B, N)]\\n"
    >>> long_enough(file, {"N": 96, "B": 4}, 1), long_enough(file, {"N": 96, "B": 4}, 5), long_enough(file, {"N": 96}, 1)
    (({'N': 4096, 'B': 8}, 2), ({'N': 4096, 'B': 4}, 4), ({'N': 4096}, 1))
    """
    full, divided = named_sizes(source), 1
    sizes = {name: full[name] for name in compared}
    for name in sorted(batch_names(source) & sizes.keys()):
        if type(sizes[name]) is int:
            sizes[name] = _halved(halvings, before := sizes[name], compared[name])
            fewer = before // sizes[name]
            halvings, divided = halvings - (fewer.bit_length() - 1), divided * fewer
    return sizes, divided


def likely_long_enough(source: str, compared: Sizes, halvings: int) -> tuple[Sizes, float]:
    """The same with each size halved so often, as far as it is even and longer than it was where results were compared.

    >>> likely_long_enough("N = 4096\\nB = 6\\n", {"N": 96, "B": 2}, 3)
    ({'N': 512, 'B': 3}, 16.0)
    """
    full = named_sizes(source)
    sizes = {name: map_numbers(partial(_halved, halvings), full[name], least) for name, least in compared.items()}
    return sizes, math.prod(map(_product, (full[name] for name in sizes))) / math.prod(map(_product, sizes.values()))


def _halved(halvings: int, number: int, least: int) -> int:
    while halvings and number % 2 == 0 and number > least:
        number, halvings = number // 2, halvings - 1
    return number


def _product(size: Any) -> int:
    return math.prod(numbers_of(size))
