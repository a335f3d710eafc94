"""The chance in runs, from values small enough to do by hand."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from pathlib import Path

import pytest

from rlkernel.report.power import Deviation, Noise, alike_pairs, arms_of, noise
from rlkernel.report.summary import RunRecord, Window
from rlkernel.statistics import detectable

LAST = Window(last=1)


def run(arm: str, seed: int, *values: float) -> RunRecord:
    """A run whose problems have these values of Fast@1.2; its own is their mean."""
    outcomes = {10: {f"p{i}": {"fast_1.2": value} for i, value in enumerate(values)}}
    validation = ({"step": 10, "fast_1.2": sum(values) / len(values)},)
    return RunRecord(Path(f"{arm}{seed}"), arm, seed, "measured", {}, validation, (), outcomes)


def test_each_source_of_chance_is_measured_by_the_runs_that_tell_it() -> None:
    runs = [run("a", 0, 0.2, 0.4), run("a", 1, 0.4, 0.4), run("b", 0, 0.4, 0.4), run("b", 1, 0.8, 0.6)]
    found = noise(arms_of(runs), "fast_1.2", LAST)
    # a: 0.3, 0.4, so 0.05^2 * 2 = 0.005; b: 0.4, 0.7, so 0.15^2 * 2 = 0.045; one degree of freedom each.
    assert found.seeds == Deviation(pytest.approx(sqrt(0.05 / 2)), 2)
    # b - a: 0.1 and 0.3.
    assert found.pairs == Deviation(pytest.approx(sqrt(0.02)), 1)
    assert found.twins is None
    # Problem 0: (0.2 + 0.4) / 2 = 0.3, problem 1: (0 + 0.2) / 2 = 0.1; deviation sqrt(0.02), error 0.1.
    assert found.problems == pytest.approx(0.1)
    assert found.detectable(4) == pytest.approx(detectable(sqrt(0.02), 4))


def test_runs_made_twice_differ_around_0() -> None:
    twin = replace(run("a", 0, 0.5), directory=Path("again"))
    found = noise(arms_of([run("a", 0, 0.2), twin, run("a", 1, 0.4), run("a", 1, 0.3)]), "fast_1.2", LAST)
    # 0.3 and -0.1: sqrt((0.09 + 0.01) / 2).
    assert found.twins == Deviation(pytest.approx(sqrt(0.05)), 2)
    # Means of twins stand for their seed: 0.35 and 0.35.
    assert found.seeds == Deviation(pytest.approx(0.0, abs=1e-12), 1)


def test_without_two_arms_the_seeds_of_one_stand_for_a_difference() -> None:
    found = noise(arms_of([run("a", 0, 0.2), run("a", 1, 0.4)]), "fast_1.2", LAST)
    assert found.pairs is None and found.problems is None
    assert found.difference == pytest.approx(sqrt(2) * sqrt(0.02))
    assert found.needed(0.02) == Noise("x", None, Deviation(0.2, 1), None, None).needed(0.02)
    unknown = noise(arms_of([run("a", 0, 0.2)]), "fast_1.2", LAST)
    assert (unknown.difference, unknown.detectable(4), unknown.needed(0.02)) == (None, None, None)


def test_an_arm_against_itself() -> None:
    # Seeds 0 and 2 against 1 and 3: differences 0.1 and 0.1, whose interval has no width and misses 0.
    runs = [run("a", seed, value) for seed, value in enumerate((0.2, 0.3, 0.2, 0.3))]
    (pair,) = alike_pairs(arms_of(runs), "fast_1.2", LAST)
    assert (pair.how, pair.difference.mean, pair.holds) == ("other seeds", pytest.approx(0.1), False)
    again = [run("a", 0, 0.3), run("a", 1, 0.2)]
    other, twice = alike_pairs(arms_of([*runs, *again]), "fast_1.2", LAST)
    assert (other.how, twice.how) == ("other seeds", "made twice")
    # 0.3 - 0.2 and 0.2 - 0.3.
    assert (twice.difference.mean, twice.holds) == (pytest.approx(0.0), True)


def test_runs_of_other_sizes_are_no_seeds_of_an_arm() -> None:
    short = replace(run("a", 1, 0.9), manifest={"run": {"steps": 1, "seed": 1}}, directory=Path("a-seed1-short"))
    found = arms_of([replace(run("a", 0, 0.2), manifest={"run": {"steps": 9, "seed": 0}}), short])
    assert list(found) == ["a0", "a-seed1-short"]
    assert noise(found, "fast_1.2", LAST).seeds is None


def test_rewards_of_arms_with_other_rewards_are_not_a_pair() -> None:
    def paid(arm: str, seed: int, reward: float) -> RunRecord:
        manifest = {"run": {"reward": {"class": arm}}}
        return replace(run(arm, seed, 0.0), manifest=manifest, validation=({"step": 10, "reward": reward},))

    found = noise(arms_of([paid("a", 0, 1.0), paid("a", 1, 2.0), paid("b", 0, 9.0), paid("b", 1, 0.0)]), "reward", LAST)
    assert found.pairs is None and found.seeds is not None
