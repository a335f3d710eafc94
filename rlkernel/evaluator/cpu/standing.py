"""How many programs of a kind each of those stands for that were followed, where the turns of their loops are known.

What a program costs grows with its turns, which are known of all programs: by `program_id`, or by whole numbers of the inputs.
So its cost is taken to lie on the line between the two followed ones that have fewer and more turns. A price is then the
same whichever programs are drawn, as long as those with the fewest and the most turns are among them.

Example: 4, 8 and 16 turns were followed. A program of 10 turns adds 3/4 to what stands for 8, and 1/4 to what stands for 16.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def standing(turns: Array, followed: Sequence[float]) -> list[float]:
    """For how many programs each of the followed ones stands. `turns`: of each program; `followed`: of each that was followed.

    >>> standing(np.array([4, 4, 10, 16]), [4, 8, 16])
    [2.0, 0.75, 1.25]
    >>> standing(np.array([7, 7, 7]), [7, 7])
    [1.5, 1.5]
    """
    met, place, times = np.unique(np.asarray(followed, dtype=np.float64), return_inverse=True, return_counts=True)
    low = np.clip(np.searchsorted(met, turns, side="right") - 1, 0, len(met) - 1)
    high = np.minimum(low + 1, len(met) - 1)
    part = np.clip((turns - met[low]) / np.maximum(met[high] - met[low], 1.0), 0.0, 1.0)
    many = np.bincount(low, 1.0 - part, len(met)) + np.bincount(high, part, len(met))
    return [float(one) for one in (many / times)[place]]
