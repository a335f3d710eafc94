"""The rule that gives verdicts, on runs written by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rlkernel.report.claims import Claim, DecidedClaim, Verdict, decide_claims, verdict_of
from rlkernel.report.summary import RunRecord, Window
from rlkernel.statistics import Comparison, Interval, compare


def run(arm: str, seed: int, *rewards: float) -> RunRecord:
    """Validation at steps 0, 10, 20, ..."""
    rows = tuple({"step": 10 * i, "reward": reward} for i, reward in enumerate(rewards))
    return RunRecord(Path(arm), arm, seed, "measured", {}, rows)


def claim(**changes: object) -> Claim:
    return Claim(**{"text": "b above a", "better": "b", "worse": "a", "metric": "reward", "paper": "", **changes})  # type: ignore[arg-type]


def interval(low: float, high: float) -> Comparison:
    return Comparison((low + high) / 2, 3, None, Interval((low + high) / 2, low, high), None, None, seeds_p=0.5)


@pytest.mark.parametrize(
    ("difference", "expected"),
    [
        (interval(0.01, 0.5), Verdict.REPRODUCED),
        (interval(-0.5, -0.01), Verdict.NOT_REPRODUCED),
        (interval(-0.04, 0.03), Verdict.NOT_REPRODUCED),
        (interval(-0.04, 0.3), Verdict.UNCLEAR),
        (compare([0.08, 0.08]), Verdict.UNCLEAR),  # a coarse quantity: no width, and yet no certainty
        (compare([0.1, 0.1, 0.1]), Verdict.UNCLEAR),
        (compare([2000.0, 2000.0 + 1e-12]), Verdict.UNCLEAR),  # rounding is no spread, whatever the unit
        (interval(-0.3, 0.3), Verdict.UNCLEAR),
        (compare([0.4]), Verdict.UNCLEAR),
        (None, Verdict.NO_RUNS),
    ],
)
def test_the_rule(difference: Comparison | None, expected: Verdict) -> None:
    assert verdict_of(difference, 0.05)[0] is expected


def test_a_reproduced_difference_within_the_margin_is_called_small() -> None:
    for high, shown in ((0.04, "reproduced (small)"), (0.06, "reproduced")):
        difference = interval(0.01, high)
        assert DecidedClaim(claim(), *verdict_of(difference, 0.05)[:1], difference, None, "").shown == shown
    assert DecidedClaim(claim(), Verdict.NO_RUNS, None, None, "").shown == "no finished runs"


@pytest.mark.parametrize(
    ("low", "high", "p", "shown"),
    [
        (0.01, 0.04, 0.061, "not reproduced (small, unclear after correction)"),
        (0.01, 0.04, 0.044, "reproduced (small)"),
        (-0.01, 0.04, 0.2, "not reproduced (within the margin)"),
        (-0.04, -0.01, 0.044, "not reproduced (the opposite)"),
        (0.01, 0.2, 0.061, "unclear after correction"),
        (-0.2, -0.01, 0.061, "unclear after correction"),
        (-0.1, 0.2, 0.5, "unclear"),
    ],
)
def test_equal_numbers_with_other_verdicts_say_what_decides(low: float, high: float, p: float, shown: str) -> None:
    difference = interval(low, high)
    verdict, _ = verdict_of(difference, 0.05, p)
    assert DecidedClaim(claim(), verdict, difference, p, "").shown == shown


def test_a_difference_never_reads_as_a_threshold_that_it_is_not_at() -> None:
    def text(low: float, high: float, **changes: object) -> str:
        return DecidedClaim(claim(**changes), Verdict.UNCLEAR, interval(low, high), None, "").difference_text

    # 0.2 % would be 0, 5.4 % the margin of 5; at 5 % and at 0 nothing is misread.
    assert text(0.002, 0.098, metric="fast_1") == "+5.0 % [+0.2, +9.8]"
    assert text(0.01, 0.054, metric="fast_1") == "+3.2 % [+1.0, +5.4]"
    assert text(0.01, 0.05, metric="fast_1") == "+3 % [+1, +5]"
    assert text(0.0, 0.08, metric="fast_1") == "+4 % [0, +8]"
    assert text(-0.0004, 0.0008, metric="train/entropy") == "+0.0002 [-0.0004, +0.0008]"


def test_a_claim_of_less_says_how_much_lower_its_arm_is() -> None:
    arms = {"a": [run("a", s, 0.0, 2.0) for s in range(3)], "b": [run("b", s, 0.0, 1.0 + 0.1 * s) for s in range(3)]}
    (found,) = decide_claims([claim(higher=False)], arms)
    # b is lower by 1, 0.9, 0.8: half the interval 4.3027 * 0.1 / sqrt(3) = 0.2484.
    assert found.difference_text == "lower by 0.90 [0.65, 1.15]"


def test_claims_are_judged_in_their_direction_and_window() -> None:
    arms = {
        "a": [run("a", seed, 0.0, 5.0, 1.0 + 0.01 * seed) for seed in range(3)],
        "b": [run("b", seed, 0.0, 0.0, 1.5) for seed in range(3)],
    }
    # Of steps 0, 10, 20 the second half is step 20: 1.5 - 1.0, 1.49 - 1.0, ... = 0.50, 0.49, 0.48.
    higher, lower, early, missing = decide_claims(
        [claim(), claim(higher=False), claim(window=Window(step=10)), claim(better="c")],
        arms,
    )
    assert higher.difference is not None and higher.difference.mean == pytest.approx(0.49)
    assert higher.verdict is Verdict.REPRODUCED
    assert lower.verdict is Verdict.NOT_REPRODUCED
    assert early.difference is not None and early.difference.mean == -5.0
    assert missing.verdict is Verdict.NO_RUNS


def test_claims_of_one_experiment_are_corrected_together() -> None:
    def arms(spread: float) -> dict[str, list[RunRecord]]:
        levels = {"a": 0.0, "b": 1.0, "c": 0.0}
        return {arm: [run(arm, s, 0.0, level + spread * s * (arm == "b")) for s in range(3)] for arm, level in levels.items()}

    # Differences 1, 1.5, 2: t = 1.5 / (0.5 / sqrt(3)) = 5.196, p = 0.0351 with 2 degrees of freedom; of two claims 0.0702.
    (alone,) = decide_claims([claim()], arms(0.5))
    assert (alone.verdict, alone.adjusted_p) == (Verdict.REPRODUCED, pytest.approx(0.0351, abs=1e-4))
    first, second = decide_claims([claim(), claim(worse="c")], arms(0.5))
    assert first.verdict is second.verdict is Verdict.UNCLEAR
    assert first.adjusted_p == pytest.approx(0.0702, abs=1e-4)
    assert first.reason == "the interval excludes 0, but one of so many claims does by chance: p 0.070"
    # A claim without seeds is no member: 1, 1.1, 1.2 has t = 19.05, p = 0.00274, of two claims 0.00549.
    found = decide_claims([claim(), claim(worse="c"), claim(better="d")], arms(0.1))
    assert [one.adjusted_p for one in found] == [pytest.approx(0.00549, abs=1e-5)] * 2 + [None]
    assert [one.verdict for one in found] == [Verdict.REPRODUCED, Verdict.REPRODUCED, Verdict.NO_RUNS]


def test_a_claim_may_be_about_some_problems() -> None:
    def asked(arm: str, seed: int, old: float, new: float) -> RunRecord:
        problems = {"level1/row_sum_8x8": {"fast_1": old}, "level1/columnnorm_softmax_8x8": {"fast_1": new}}
        return replace(run(arm, seed, 0.0, 0.0), outcomes={10: problems})

    arms = {"a": [asked("a", s, 0.9, 0.1) for s in range(2)], "b": [asked("b", s, 0.2, 0.3 + 0.2 * s) for s in range(2)]}
    (found,) = decide_claims([claim(metric="fast_1", among="/columnnorm_")], arms)
    # 0.3 - 0.1 and 0.5 - 0.1, of one problem.
    assert found.difference is not None
    assert (found.difference.mean, found.difference.problems) == (pytest.approx(0.3), 1)
    (none,) = decide_claims([claim(metric="fast_1", among="/pool_")], arms)
    assert none.verdict is Verdict.NO_RUNS


def test_a_metric_that_finished_runs_lack_is_not_called_a_lack_of_runs() -> None:
    def arm(name: str, *finished: int) -> list[RunRecord]:
        manifest = {True: {"finished": "today"}, False: {}}
        return [replace(run(name, seed, 0.0, 1.0), manifest=manifest[seed in finished]) for seed in range(3)]

    lacking = claim(metric="oracle_fraction")
    (both,) = decide_claims([lacking], {"a": arm("a", 0, 1), "b": arm("b", 0, 1, 2)})
    assert (both.verdict, both.shown, both.judged) == (Verdict.NOT_RECORDED, "not recorded", False)
    assert both.reason == "2 seeds have finished in both arms, without oracle_fraction in the claim's window"
    (apart,) = decide_claims([lacking], {"a": arm("a", 0), "b": arm("b", 1)})
    assert (apart.verdict, apart.reason) == (Verdict.NO_RUNS, "no seed has finished in both arms")
    (named,) = decide_claims([replace(lacking, among="/pool_")], {"a": arm("a", 2), "b": arm("b", 2)})
    assert named.reason.startswith("1 seed has finished in both arms, without oracle_fraction of the problems named /pool_ in")


def test_arms_that_stand_at_one_value_in_every_seed_are_told_so() -> None:
    def arms(first: float, other: float, key: str = "reward") -> dict[str, list[RunRecord]]:
        levels = {"a": (0.0, other, other), "b": (0.5, first, first)}
        rows = {arm: tuple({"step": 10 * i, key: level} for i, level in enumerate(found)) for arm, found in levels.items()}
        return {arm: [RunRecord(Path(arm), arm, seed, "measured", {}, found) for seed in range(2)] for arm, found in rows.items()}

    (floor,) = decide_claims([claim()], arms(0.0, 0.0))
    assert (floor.verdict, floor.level, floor.adjusted_p) == (Verdict.UNCLEAR, 0.0, None)
    assert floor.reason == "both arms are at 0 in every seed: nothing to tell apart"
    assert (floor.shown, floor.difference_text) == ("unclear", "0.00 [0.00, 0.00]")
    (ceiling,) = decide_claims([claim(metric="fast_1")], arms(1.0, 1.0, "fast_1"))
    assert ceiling.reason == "both arms are at 100 % in every seed: nothing to tell apart"
    # An arm that is compared with itself, at steps 10 and 20.
    (itself,) = decide_claims([claim(worse="b", window=Window(step=20), worse_window=Window(step=10))], arms(0.0, 9.0))
    assert itself.reason == "both windows are at 0 in every seed: nothing to tell apart"
    # Seeds without a spread whose arms differ, arms that differ in one seed by little, and one seed alone.
    (apart,) = decide_claims([claim()], arms(0.1, 0.0))
    assert (apart.level, apart.reason) == (None, "all seeds differ by the same, which says nothing about chance")
    one_by_little = arms(0.0, 0.0)
    one_by_little["a"][1] = run("a", 1, 0.0, 1e-6)
    assert decide_claims([claim()], one_by_little)[0].level is None
    one_seed = {arm: runs[:1] for arm, runs in arms(0.0, 0.0).items()}
    (alone,) = decide_claims([claim()], one_seed)
    assert (alone.level, alone.reason) == (None, "one seed has no interval")
    # A seed that the other arm lacks does not count.
    more = {arm: [*runs, *([run("a", 2, 0.0, 5.0)] if arm == "a" else [])] for arm, runs in arms(0.0, 0.0).items()}
    assert decide_claims([claim()], more)[0].level == 0.0


def test_rewards_of_arms_that_are_paid_differently_are_not_judged() -> None:
    def paid(arm: str, cap: float) -> list[RunRecord]:
        return [replace(run(arm, seed, 0.0, cap), manifest={"run": {"reward": {"cap": cap}}}) for seed in range(3)]

    arms = {"a": paid("a", 1.0), "b": paid("b", 3.0)}
    (found,) = decide_claims([claim()], arms)
    assert (found.verdict, found.difference, found.judged) == (Verdict.NOT_COMPARABLE, None, False)
    assert found.reason == "the arms are paid by different rewards"


def test_a_claim_says_what_its_seeds_detect_and_how_many_it_needs() -> None:
    # Differences 0.1, 0.2, 0.3: deviation 0.1. Three seeds detect (4.3027 + 1.0607) * 0.1 / sqrt(3) = 0.30966.
    arms = {"a": [run("a", s, 0.0, 0.0) for s in range(3)], "b": [run("b", s, 0.0, 0.1 * (s + 1)) for s in range(3)]}
    (found,) = decide_claims([claim(margin=0.31)], arms)
    assert found.detectable == pytest.approx(0.30966, abs=1e-4)
    assert (found.detectable_text, found.seeds_text) == ("0.31", "3")
    (small,) = decide_claims([claim(margin=0.1)], arms)
    # n = 10: 3.1456 * 0.1 / sqrt(10) = 0.0995; n = 9: (2.3060 + 0.8889) * 0.1 / 3 = 0.1065.
    assert small.seeds_text == "10"
    # One of two claims: Holm asks p <= 0.025 of the clearer one. (6.2053 + 1.0607) * 0.1 / sqrt(3) = 0.41950.
    first, _ = decide_claims([claim(margin=0.42), claim(better="a", worse="b")], arms)
    assert first.detectable == pytest.approx(0.41950, abs=1e-4)
    assert (first.detectable_text, first.seeds_text) == ("0.42", "3")
    (none,) = decide_claims([claim(margin=0.0)], arms)
    assert (none.detectable_text, none.seeds_text) == ("0.31", "")
    (alone,) = decide_claims([claim()], {arm: members[:1] for arm, members in arms.items()})
    assert (alone.detectable, alone.detectable_text, alone.seeds_text) == (None, "", "")


def test_an_arm_is_compared_with_itself_at_another_step() -> None:
    arms = {"a": [run("a", seed, 0.1 * seed, 1.0, 2.0 + 0.1 * seed) for seed in range(3)]}
    (found,) = decide_claims([claim(better="a", worse="a", window=Window(last=1), worse_window=Window(step=0))], arms)
    assert found.difference is not None and found.difference.mean == pytest.approx(2.0)
