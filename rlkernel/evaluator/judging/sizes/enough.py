"""Sizes at which what was too short to be judged should be long enough.

They are those of the full shape, of which a batch is halved as often as all that is short bears it: where it counts what a module
works on, it leaves loops and grids at least half as long. Nothing is tried: whoever waits for a verdict decides whether to.
"""

from __future__ import annotations

from rlkernel.evaluator.judging.sizes.constants import counts_of
from rlkernel.evaluator.judging.sizes.made_inputs import batch_names
from rlkernel.evaluator.judging.sizes.resizing import Sizes


def strangers(source: str, compared: Sizes) -> list[str]:
    """Those of the sizes at which results were compared that are no constants of the file, which `SMALL` cannot name."""
    return [name for name in compared if name not in counts_of(source)]


def long_enough(source: str, compared: Sizes, halvings: int) -> tuple[Sizes, int]:
    """The sizes, of which none is a stranger, and by how much they are smaller in all than the full shape. halvings: how often
    all that is short may be halved.

    >>> file = "N = 4096\\nB = 16\\ndef get_inputs():\\n    return [torch.rand(B, N)]\\n"
    >>> long_enough(file, {"N": 96, "B": 4}, 1), long_enough(file, {"N": 96, "B": 4}, 5), long_enough(file, {"N": 96}, 1)
    (({'N': 4096, 'B': 8}, 2), ({'N': 4096, 'B': 4}, 4), ({'N': 4096}, 1))
    """
    full, divided = counts_of(source), 1
    sizes = {name: full[name] for name in compared}
    for name in sorted(batch_names(source) & sizes.keys()):
        while type(sizes[name]) is int and halvings and sizes[name] % 2 == 0 and sizes[name] > compared[name]:
            sizes[name], halvings, divided = sizes[name] // 2, halvings - 1, divided * 2
    return sizes, divided
