"""Which lanes of a decode step attend together, and what is hidden from them."""

from __future__ import annotations

import torch

from rlkernel.policy.slots.plans import hidden, lane_runs


def test_neighbouring_pages_are_one_run_with_a_mask_where_lengths_differ() -> None:
    first, second = lane_runs([0, 1, 3], [4, 2, 5], torch.float32)
    # New tokens stand at positions 4 and 2: five positions, of which lane 1 sees the first three.
    assert (first.start, first.end, first.pages, first.positions) == (0, 2, slice(0, 2), 5)
    assert first.mask is not None and first.mask.shape == (2, 1, 1, 5)
    assert first.mask[:, 0, 0].tolist() == [[0.0] * 5, [0.0, 0.0, 0.0, float("-inf"), float("-inf")]]
    assert (second.start, second.end, second.pages, second.positions, second.mask) == (2, 3, slice(3, 4), 6, None)
    (alike,) = lane_runs([1, 2], [7, 7], torch.float32)
    assert alike.mask is None


def test_positions_that_no_lane_reaches_are_hidden_from_all() -> None:
    mask = hidden([1, 1], 4, torch.float32)
    assert mask is not None and mask[:, 0, 0].tolist() == [[0.0, 0.0, float("-inf"), float("-inf")]] * 2
