"""The table of what each run has in the window of a claim."""

from __future__ import annotations

from pathlib import Path

from experiments.results.seeds import seeds_lines
from rlkernel.report.claims import Claim, decide_claims
from rlkernel.report.summary import RunRecord, Window


def run(arm: str, seed: int, first: float, last: float) -> RunRecord:
    """A run whose validations before and after training have these values."""
    rows = tuple({"step": step, "fast_1": value, "hacking_rate": 0.5} for step, value in ((0, first), (8, last)))
    return RunRecord(Path(f"{arm}{seed}"), arm, seed, "measured", {"finished": "2026-11-28"}, rows)


def test_each_seed_has_what_the_second_arm_and_then_the_first_has_in_the_window() -> None:
    claims = (
        Claim("Trained is better", "a", "b", "fast_1", "not in the paper"),
        Claim("Training helps", "a", "a", "fast_1", "not in the paper", worse_window=Window(step=0)),
        Claim("Nobody ran", "a", "c", "fast_1", "not in the paper"),
    )
    arms = {"a": [run("a", 0, 0.25, 0.5), run("a", 2, 0.125, 0.75)], "b": [run("b", 0, 0.0, 0.375)]}
    assert seeds_lines(decide_claims(claims, arms), arms)[5:] == [
        "| claim | seed 0 | seed 2 |",
        "|---|---|---|",
        "| Trained is better | 37.5 % → 50.0 % | - |",
        "| Training helps | 25.0 % → 50.0 % | 12.5 % → 75.0 % |",
    ]


def test_claims_without_runs_have_no_table() -> None:
    assert seeds_lines(decide_claims((Claim("x", "a", "b", "fast_1", "not in the paper"),), {}), {}) == []
