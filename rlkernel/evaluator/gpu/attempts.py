"""What short measurements say of a card that somebody else may use, too: the best of several attempts.

Whoever else uses the card or its host makes an attempt slower and never faster. So the shortest time is the nearest to what the
card can do, and a floor under it is a lower bound on a busy machine, too. Pure; `rates.py` makes the attempts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

ATTEMPTS = 15
FIRST_SPIN_US = 1_000.0
MOST_SPIN_US = 40_000.0

Attempt = Callable[[float], tuple[float, bool]]
"""Makes launches behind a spin of so many microseconds. Returns the time of one in microseconds, and whether the spin was over
before the host had enqueued them all, so that its pace was measured."""


def launch_cost(attempt: Attempt) -> float:
    """The time of one launch in microseconds. Each attempt that the host has held up doubles the spin of the next one."""
    spin, found = FIRST_SPIN_US, []
    for _ in range(ATTEMPTS):
        us, held_up = attempt(spin)
        found.append(us)
        if held_up:
            spin = min(2.0 * spin, MOST_SPIN_US)
    return min(found)


def bandwidth(copied_bytes: int, times_us: Sequence[float]) -> float:
    """Bytes per microsecond of copies that read and write so many bytes, from their times.

    >>> bandwidth(1000, [2.0, 1.0, 50.0])
    2000.0
    """
    return 2.0 * copied_bytes / min(times_us)
