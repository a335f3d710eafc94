"""The arithmetic of the estimate on paper."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.scaling import BANDWIDTH, FLOPS, USABLE, Judged, Step

STEP = Step(cards=64, answer_tokens=2000, evaluations_per_second=50.0, training_share=0.25)


def test_a_step_is_the_sum_of_its_operations_over_the_cards_rates() -> None:
    # 256 rollouts x (2000 + 3 x 2000) tokens, 8 operations per weight and token, a quarter of 64 cards.
    assert STEP.training == pytest.approx(8 * 14.8e9 * 256 * 8000 / (0.25 * 64 * FLOPS))
    assert STEP.judging == pytest.approx(768 / (50 * 64))
    # 4 rows per card fit at once: 6000 tokens in a row, each reads the weights and 4 rows' 5000 tokens on average.
    moved = 2 * 14.8e9 + 4 * 5000 * 163840
    assert STEP.sampling == pytest.approx(6000 * moved / (USABLE * BANDWIDTH))


def test_rows_that_do_not_fit_read_the_weights_again() -> None:
    # (0.9 x 141 GB - 29.6 GB) / (8000 x 163840 B) = 74 rows: 256 take four waves.
    moved = 4 * 2 * 14.8e9 + 256 * 5000 * 163840
    assert replace(STEP, cards=1).sampling == pytest.approx(6000 * moved / (USABLE * BANDWIDTH))


def test_a_point_has_the_limits_of_one_card_and_of_one_core() -> None:
    run = {
        "machine": {"cores": 32, "gpus": [{}, {}]}, "per_second": 80.0, "gpu_capacity_per_second": 150.0,
        "cpu": {"parent": 0.4, "children": 15.6},
    }  # fmt: skip
    assert Judged.read(run) == Judged(32, 2, 80.0, card_per_second=75.0, core_seconds=0.2)
