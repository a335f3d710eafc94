"""The arithmetic of the estimate on paper."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from benchmarks import scaling
from benchmarks.scaling import BANDWIDTH, FLOPS, USABLE, Judged, Step, last_of_one_card

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


def test_the_last_rate_of_one_card_is_the_one_of_today() -> None:
    two = Judged(32, 2, 97.0, when="11-24")
    assert last_of_one_card([Judged(16, 1, 54.0, when="11-21"), two, Judged(32, 1, 36.3, when="11-23")]) == 36.3


def test_no_two_lines_of_a_drawing_look_alike(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kept: list[Figure] = []
    monkeypatch.setattr(plt, "close", kept.append)
    scaling.draw([*scaling.points(), Judged(32, 1, 36.3, when="11-23")], [(2.0, 12.1, "11-23")], tmp_path / "figure.png")
    (figure,) = kept
    for axes in figure.axes:
        looks = [(line.get_color(), line.get_linestyle(), line.get_marker()) for line in axes.get_lines()]
        labels = [line.get_label() for line in axes.get_lines()]
        assert len(set(looks)) == len(looks) and len(set(labels)) == len(labels)
    by_cores = figure.axes[0]
    assert sorted(text.get_text() for text in by_cores.texts) == ["21 Nov", "21 Nov", "21 Nov", "23 Nov", "23 Nov"]
    plt.close(figure)
