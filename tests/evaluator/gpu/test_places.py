"""The places in memory of what forward allocates in timed calls."""

from __future__ import annotations

from typing import Any

import pytest
import torch


@pytest.mark.parametrize(
    ("mib", "places", "detours"), [(0, 48, 12), (3.99, 48, 12), (4, 12, 12), (8, 4, 4), (63, 4, 4), (64, 2, 2), (1024, 2, 2)]
)
def test_small_tensors_lie_in_many_places(room: Any, mib: float, places: int, detours: int) -> None:
    nbytes = int(mib * (1 << 20))
    assert (room.places.places(nbytes), room.places.detours(nbytes)) == (places, detours)


def test_a_place_is_made_once_and_refilled_with_other_bits(room: Any) -> None:
    made = room.places.Places(room.guards.Guards(), 3, {4: ((2, 3), (3, 1), torch.float32)})
    assert len(made) == 3 and made[1][4].shape == (2, 3) and made[1][4] is made[1][4]
    made[0][4].fill_(0.0)
    before = made[1][4].view(torch.int32).tolist()
    made.refill(1)
    once = made[1][4].view(torch.int32).tolist()
    made.refill(1)
    assert len({str(before), str(once), str(made[1][4].view(torch.int32).tolist())}) == 3  # 2 of 2^62 numbers are equal by chance
    assert made[0][4].tolist() == [[0.0] * 3] * 2  # another place is not touched
