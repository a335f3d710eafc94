"""The first line of a report, word for word."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlkernel.report.claims import Claim, decide_claims
from rlkernel.report.findings import claim_line, finding
from rlkernel.report.summary import REQUIRED, RunRecord, summarise

KEYS = dict.fromkeys(REQUIRED, 0.5)


def arm(name: str, *last: float, key: str = "reward") -> list[RunRecord]:
    """Runs of seeds 0, 1, ... whose last measurement is as given."""
    return [
        RunRecord(Path(name), name, seed, "modelled", {}, ({"step": 0, **KEYS}, {"step": 5, **KEYS, key: value}))
        for seed, value in enumerate(last)
    ]


def line(claims: list[Claim], *arms: list[RunRecord]) -> str:
    runs = [run for members in arms for run in members]
    return finding(decide_claims(claims, {members[0].arm: members for members in arms}), summarise(runs))


ABOVE = Claim("TRLOO ends above GRPO in reward", "trloo", "grpo", "reward", "")


def test_what_is_not_decided_says_how_many_seeds_would_decide_it() -> None:
    # Differences -0.02 and 0.02: deviation 0.02828, half the interval 12.7062 * 0.02828 / sqrt(2) = 0.2541.
    # n = 5: (2.7764 + 0.9410) * 0.02828 / sqrt(5) = 0.0470; n = 4: 4.1609 * 0.02828 / 2 = 0.0588.
    found = line([ABOVE], arm("grpo", 1.0, 1.0), arm("trloo", 0.98, 1.02))
    assert found == (
        "trloo against grpo in reward: not decided by 2 seeds (difference 0.00, interval -0.25 to +0.25); "
        "5 seeds would detect 0.05."
    )


def test_arms_at_the_floor_are_told_so_in_place_of_a_number_of_seeds() -> None:
    assert line([ABOVE], arm("grpo", 0.0, 0.0, 0.0), arm("trloo", 0.0, 0.0, 0.0)) == (
        "trloo against grpo in reward: not decided by 3 seeds, as both arms are at 0 in every seed: nothing to tell apart."
    )


def test_what_is_decided_leads_whatever_its_place() -> None:
    faster = Claim("Paid for speed, faster", "trloo", "capped", "fast_1.2", "")
    grpo = arm("grpo", 1.0, 1.0, 1.0, key="reward")
    trloo = [
        RunRecord(Path("t"), "trloo", s, "modelled", {}, ({"step": 5, **KEYS, "reward": r, "fast_1.2": 0.9},))
        for s, r in enumerate((0.9, 1.0, 1.1))
    ]
    capped = arm("capped", 0.6, 0.7, 0.65, key="fast_1.2")
    # 0.3, 0.2, 0.25: half 4.3027 * 0.05 / sqrt(3) = 0.1242.
    assert line([ABOVE, faster], grpo, trloo, capped) == (
        "trloo against capped in Fast@1.2: higher as claimed, by 3 seeds (difference +25 %, interval +13 to +37 %). "
        "1 of 2 claims are decided."
    )


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((0.10, 0.11, 0.12), "lower as claimed, by 3 seeds (difference -39 %, interval -41 to -37 %)"),
        ((0.475, 0.480, 0.485), "lower as claimed, if by less than 5 %, by 3 seeds (difference -2 %, interval -3 to -1 %)"),
        ((0.90, 0.91, 0.92), "higher, against the claim, by 3 seeds (difference +41 %, interval +39 to +43 %)"),
        ((0.49, 0.50, 0.51), "no difference of 5 %, shown by 3 seeds (difference 0 %, interval -2 to +2 %)"),
    ],
)
def test_a_claim_of_less_is_told_as_it_is(values: tuple[float, ...], said: str) -> None:
    less = Claim("b hacks less", "b", "a", "hacking_rate", "", higher=False, margin=0.05)
    arms = {"a": arm("a", 0.5, 0.5, 0.5, key="hacking_rate"), "b": arm("b", *values, key="hacking_rate")}
    (found,) = decide_claims([less], arms)
    assert claim_line(found) == f"b against a in hacking: {said}"


def test_without_claims_the_arms_themselves_are_told() -> None:
    assert line([], arm("a", 1.0)) == "a alone: validation reward 0.50 to 1.00; no other arm to compare with."
    assert line([], arm("a", 1.0, 1.0), arm("b", 0.8, 0.82)) == (
        "b against a in reward: lower, by 2 seeds (difference -0.19, interval -0.32 to -0.06)."
    )
    assert line([ABOVE], arm("a", 1.0), arm("b", 1.0)) == ("b against a in reward: not decided by 1 seed (difference 0.00).")
    with pytest.raises(ValueError, match="has no runs"):
        claim_line(decide_claims([ABOVE], {})[0])
