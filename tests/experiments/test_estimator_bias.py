"""The study shows what its docstring says, and its command writes the figure and the numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from algorithms.grpo import GRPO
from algorithms.max_rl import MaxRL
from algorithms.rloo import RLOO
from algorithms.trloo import TRLOO
from experiments import estimator_bias
from experiments.estimator_bias import ARMS, BATCH, LENGTH, STEPS, N, bias, example, in_units_of_reward, main
from experiments.two_turns import ascend, moments, sampled_gradient
from rlkernel.interfaces import Advantage


def exact(advantage: Advantage | None) -> torch.Tensor:
    toy, start = example()
    gradient = toy.true_gradient if advantage is None else lambda logits: moments(toy, logits, advantage, N).mean_RP
    return ascend(toy, start, gradient, STEPS, LENGTH)[0]


def test_the_toy_by_hand() -> None:
    toy, start = example()
    # 0.8 * 1 + 0.2 * 0.3 * 2 = 0.92; going on is worth 0.6, less than stopping, and 2 once it is learned.
    assert toy.value(start).item() == pytest.approx(0.92)
    assert toy.best().item() == 2.0
    # d value / d logit of stopping: 0.8 * (1 - 0.92); of going on: 0.2 * (0.6 - 0.92); of fusing: 0.2 * 0.3 * (2 - 0.6).
    assert toy.true_gradient(start)[0].tolist() == pytest.approx([0.064, -0.064, 0.084, -0.084])


def test_trloo_is_ahead_of_grpo_where_trajectories_end_early() -> None:
    true, trloo, grpo = exact(None), exact(TRLOO()), exact(GRPO())
    torch.testing.assert_close(trloo, true, atol=1e-6, rtol=0)
    assert (trloo[5:] > grpo[5:]).all()
    # GRPO learns to stop; TRLOO learns to go on.
    assert (round(grpo[-1].item(), 2), round(trloo[-1].item(), 2)) == (1.0, 2.0)


def test_so_it_is_when_the_gradient_is_sampled() -> None:
    toy, start = example(60)

    def last(advantage: Advantage) -> float:
        gradient = sampled_gradient(toy, advantage, N, BATCH, torch.Generator().manual_seed(1))
        return float(ascend(toy, start, gradient, 80, LENGTH)[:, -1].mean())

    grpo, trloo, rloo = last(GRPO()), last(TRLOO()), last(RLOO())
    assert grpo < 1.3 < 1.7 < trloo
    # The negative finding of the docstring: not above RLOO.
    assert trloo < rloo + 0.05


def numbers(arm: str, key: str) -> list[float]:
    """For groups of 2, 4, 8 and 16."""
    found = [bias(ARMS[arm], size)[key] for size in (2, 4, 8, 16)]
    return [value for value in found if value is not None]


def test_bias_falls_with_the_size_of_the_group() -> None:
    def biases(arm: str) -> list[float]:
        return numbers(arm, "bias")

    assert biases("TRLOO") == pytest.approx([0.0] * 4, abs=1e-9)
    assert biases("RLOO") == pytest.approx([0.0] * 4, abs=1e-9)
    shrinking = biases("Dr. GRPO")
    assert shrinking == sorted(shrinking, reverse=True)
    # More than 1/N, which is what a fixed group size would give: the second turn has few samples.
    assert all(found > 1 / size for found, size in zip(shrinking, (2, 4, 8, 16), strict=True))


def test_the_standard_deviation_turns_the_gradient_further_and_for_longer() -> None:
    grpo, dr_grpo = numbers("GRPO", "angle"), numbers("Dr. GRPO", "angle")
    assert [round(angle, 1) for angle in grpo] == [45.2, 42.5, 37.6, 31.4]
    assert grpo == sorted(grpo, reverse=True)
    assert dr_grpo == sorted(dr_grpo, reverse=True)
    # From N = 2 to 16 it falls to a bit more than two thirds of itself, and to less than a third.
    assert grpo[3] / grpo[0] > 0.66
    assert dr_grpo[3] / dr_grpo[0] < 0.33
    assert max(numbers("TRLOO", "angle") + numbers("RLOO", "angle")) < 1e-4


def test_an_estimator_that_divides_by_the_standard_deviation_has_an_angle_but_no_bias() -> None:
    for unit in (0.1, 10.0):
        grpo, dr_grpo = bias(ARMS["GRPO"], 4, unit), bias(ARMS["Dr. GRPO"], 4, unit)
        assert (grpo["bias"], grpo["noise"]) == (None, None)
        assert grpo["angle"] == pytest.approx(42.5, abs=0.05)
        assert dr_grpo["bias"] == pytest.approx(0.606, abs=5e-4)
    assert {name for name, arm in ARMS.items() if in_units_of_reward(arm)} == set(ARMS) - {"GRPO"}
    assert not in_units_of_reward(MaxRL())


def test_the_sampled_gradient_is_the_exact_one_on_average() -> None:
    toy, start = example(2000)
    for advantage in (TRLOO(), GRPO()):
        found = sampled_gradient(toy, advantage, N, 20, torch.Generator().manual_seed(0))(start)
        expected = moments(*example(), advantage, N)
        # The standard error of 40,000 groups.
        error = expected.spread_R[0] / 200
        assert (found.mean(0) - expected.mean_RP[0]).norm() < 3 * error


def test_the_command_writes_figure_and_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {"STEPS": 3, "RUNS": 4, "RANDOM_TOYS": 2, "SIZES": (2, 4)}.items():
        monkeypatch.setattr(estimator_bias, name, value)
    assert main(["--out", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "figure.png").stat().st_size > 20_000
    numbers = json.loads((tmp_path / "out" / "numbers.json").read_text())
    assert numbers.keys() == {"true gradient", *ARMS}
    assert len(numbers["TRLOO"]["exact"]) == 4
    printed = capsys.readouterr().out
    assert all(arm in printed for arm in ARMS)
    assert main(["--bogus"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
