"""The study shows what its docstring says, and its command writes the numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from algorithms.mis import MIS
from algorithms.mrs import MRS
from algorithms.tis import TIS
from algorithms.trloo import TRLOO
from experiments import estimator_bias, off_policy_bias
from experiments.off_policy_bias import ARMS, GAPS, Gap, N, bias, main, policies
from experiments.two_turns import TwoTurns, moments
from rlkernel.statistics import Interval
from tests.algorithms.test_exact_gradient import DRIFT, ENDINGS, FIRST, LOGITS, PATHS, SECOND, corrected

BOTH = GAPS["8 bits and age 2"]


@pytest.mark.parametrize("gap", GAPS)
def test_whole_trajectories_without_bounds_have_no_bias_and_the_most_noise(gap: str) -> None:
    found = bias(ARMS["TIS, trajectories"], GAPS[gap])
    assert found["bias"].high < 1e-9
    assert found["kept"].low == pytest.approx(1.0)
    assert found["noise"].mean >= bias(ARMS["TIS, trajectories, at most 2"], GAPS[gap])["noise"].mean


@pytest.mark.parametrize(
    ("arm", "low", "mean", "high"),
    [
        ("nothing", 0.420, 0.497, 0.575),
        ("TIS, tokens, at most 2", 0.197, 0.235, 0.273),
        ("TIS, trajectories, at most 2", 0.094, 0.131, 0.168),
        ("MIS, tokens, 0.5 to 5", 0.230, 0.286, 0.343),
        ("MIS, trajectories, 0.5 to 2", 0.656, 0.716, 0.776),
        ("MRS, 0.9 to 1.1", 0.995, 1.006, 1.017),
    ],
)
def test_the_bias_of_eight_bits_and_age_2(arm: str, low: float, mean: float, high: float) -> None:
    found = bias(ARMS[arm], BOTH)["bias"]
    assert (found.low, found.mean, found.high) == pytest.approx((low, mean, high), abs=6e-4)


def test_rollouts_that_span_an_update_have_less_bias_than_older_ones() -> None:
    spanning = GAPS["8 bits and age 2, then 1"]
    for arm in ("nothing", "TIS, tokens, at most 2", "TIS, trajectories, at most 2", "MIS, trajectories, 0.5 to 2"):
        old, new = bias(ARMS[arm], BOTH)["bias"], bias(ARMS[arm], spanning)["bias"]
        assert new.mean < old.mean, arm
    # The second turn's weights are those of after the first of two steps, and the first turn's are of before both.
    toy, train, sampling = policies(Gap(2, refreshed=1))
    _, between, old = policies(Gap(1))
    second = slice(1 + toy.paths, None)
    torch.testing.assert_close(sampling[:, : 1 + toy.paths], old[:, : 1 + toy.paths], atol=1e-12, rtol=0)
    torch.testing.assert_close(sampling[:, second], between[:, second], atol=1e-12, rtol=0)
    torch.testing.assert_close(policies(Gap(2, refreshed=2))[2][:, second], train[:, second], atol=1e-12, rtol=0)


def test_the_gaps_are_what_they_are_called() -> None:
    _, train, on_policy = policies(Gap())
    torch.testing.assert_close(on_policy, train, atol=1e-12, rtol=0)
    _, same, rounded = policies(Gap(eight_bits=True))
    # Eight bits have 3 bits of mantissa: a weight is off by at most 1/16 of itself, and a sum of 32 of them by much less.
    assert 1e-3 < (rounded - same).abs().mean() < 0.1
    _, ahead, old = policies(Gap(2))
    torch.testing.assert_close(old, train, atol=1e-12, rtol=0)
    assert (ahead - old).norm(dim=-1).max() <= 2 * off_policy_bias.LENGTH + 1e-12
    # On policy, every correction leaves the gradient as it is.
    for correction in ARMS.values():
        toy, logits, sampling = policies(Gap())
        found = moments(toy, logits, TRLOO(), N, sampling_RP=sampling, correction=correction)
        torch.testing.assert_close(found.mean_RP, toy.true_gradient(logits), atol=1e-9, rtol=0)


@pytest.mark.parametrize("correction", [None, TIS(), TIS("sequence"), MIS(), MRS(low=0.75, high=1.3)], ids=str)
def test_the_sums_are_those_over_ordered_groups(correction: TIS | MIS | MRS | None) -> None:
    """Against tests/algorithms/test_exact_gradient.py, which shares no code with the study."""
    toy = TwoTurns(torch.tensor([FIRST], dtype=torch.float64), torch.tensor([SECOND[1:]], dtype=torch.float64))
    kept = torch.cat([torch.arange(PATHS), torch.arange(PATHS + ENDINGS, len(LOGITS))])
    found = moments(toy, LOGITS[kept][None], TRLOO(), 3, sampling_RP=(LOGITS + DRIFT)[kept][None], correction=correction)
    total, turns = corrected(correction, LOGITS, LOGITS + DRIFT, 3)
    _, all_turns = corrected(None, LOGITS, LOGITS + DRIFT, 3)
    torch.testing.assert_close(found.mean_RP[0], total[kept] / 3, atol=1e-12, rtol=0)
    assert found.kept_R.item() == pytest.approx(float(turns / all_turns), abs=1e-12)


def test_the_command_writes_the_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(estimator_bias, "RANDOM_TOYS", 3)
    monkeypatch.setattr(off_policy_bias, "ARMS", {"nothing": None, "TIS, tokens": TIS()})
    assert main(["--out", str(tmp_path / "out")]) == 0
    numbers = json.loads((tmp_path / "out" / "numbers.json").read_text())
    assert numbers.keys() == GAPS.keys() and numbers["age 2"].keys() == {"nothing", "TIS, tokens"}
    assert numbers["age 2"]["nothing"]["bias"].keys() == {"mean", "low", "high"}
    assert "8 bits and age 2" in capsys.readouterr().out
    assert main(["--bogus"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_tables_fit_a_screen_and_say_what_their_columns_mean(capsys: pytest.CaptureFixture[str]) -> None:
    of_one = {"bias": Interval(0.497, 0.420, 0.574), **dict.fromkeys(("angle", "noise", "kept"), Interval(99.5, 88.25, 110.75))}
    off_policy_bias.print_table({gap: dict.fromkeys(ARMS, of_one) for gap in GAPS})
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 100
    assert lines[2].split() == ["nothing", "0.497", "±", "0.077", *["99.500", "±", "11.250"] * 3]
    for column in lines[1].split()[1:]:
        assert any(line.startswith(f"{column}: ") for line in lines), column
