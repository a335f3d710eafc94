"""The benchmarks' arithmetic, on made-up evaluations; and the hostile candidates that are injected."""

from __future__ import annotations

import pytest

from benchmarks.corpus import Case, corpus
from benchmarks.drive import Done, percentile
from benchmarks.evaluator_throughput import Measured, figures
from benchmarks.fault_injection import Deserved, hostile, recovery, wrong
from benchmarks.timing_spread import LARGE, LONG, SHORT, SMALL, chosen, grouped, resized, spreads
from rlkernel.types import Evaluation, Problem, Seconds, Status

PROBLEM = Problem("level1/x", 1, "train", "ROWS = 8\n")


def done(
    name: str, ended: float = 0.0, *, status: Status = Status.CORRECT, gpu: float = 0.0, total: float = 0.0, **times: float
) -> Done:
    seconds = Seconds(gpu=gpu, total=total)
    result = Evaluation(status, "", seconds=seconds, **times)  # type: ignore[arg-type]
    return Done(Case(PROBLEM, name, name), result, "", ended)


def test_percentiles_are_linear_between_sorted_values() -> None:
    # Place 0.95 * 4 = 3.8 of 0, 10, 20, 30, 40 is 38.
    assert percentile([40.0, 0.0, 30.0, 10.0, 20.0], 95) == pytest.approx(38.0)


def test_throughput_capacity_and_share_of_two_gpus() -> None:
    rows = (done("a", gpu=0.02, candidate_us=10.0), done("b", gpu=0.06, candidate_us=2000.0))
    found = figures(Measured({"gpus": [{}, {}]}, 1.0, 0.5, {}, rows))
    assert found["per_second"] == pytest.approx(4.0)  # 2 in 0.5 s
    assert found["gpu_capacity_per_second"] == pytest.approx(50.0)  # 2 / 0.08 s, on two GPUs
    assert found["gpu_share_of_wall"] == pytest.approx(0.08)  # 0.08 s of 2 * 0.5 s
    assert found["gpu_slot_under_1ms"]["median"] == pytest.approx(0.02)
    assert found["gpu_slot"]["median"] == pytest.approx(0.04)


def test_without_a_gpu_there_is_no_capacity() -> None:
    found = figures(Measured({"gpus": []}, 1.0, 0.5, {}, (done("a", candidate_us=10.0),)))
    assert found["gpu_capacity_per_second"] is None
    assert found["gpu_slot_under_1ms"]["count"] == 0


def test_spread_is_p95_over_p5_over_all_openings_and_grouped_by_the_reference_s_time() -> None:
    def row(name: str, speedup: float, reference_us: float) -> Done:
        return done(name, speedup=speedup, speedup_low=1.0, speedup_high=1.0, reference_us=reference_us, candidate_us=1.0)

    sample = [Case(PROBLEM, "long", ""), Case(PROBLEM, "short", "")]
    openings = [[row("long", 1.0, 30.0), row("short", 2.0, 5.0)], [row("long", 1.1, 30.0), row("short", 2.0, 5.0)]]
    long, short = spreads(sample, openings, "idle")
    assert long["spread"] == pytest.approx(1.095 / 1.005)  # places 0.95 and 0.05 between 1.0 and 1.1
    assert long["range"] == pytest.approx(1.1)
    assert long["speedups"] == [[1.0], [1.1]]
    assert (long["group"], short["group"]) == (LONG, SHORT)
    assert [(g["group"], g["within"], g["candidates"]) for g in grouped([long, short])] == [(LONG, 0, 1), (SHORT, 1, 1)]


def test_a_repeated_candidate_that_is_not_correct_has_no_spread() -> None:
    (row,) = spreads([Case(PROBLEM, "a", "")], [[done("a", status=Status.INCORRECT)]], "busy")
    assert row["statuses"] == ["incorrect"]
    assert "spread" not in row


def test_the_sample_is_distinct_and_its_small_problems_are_small() -> None:
    sample = chosen(len(SMALL) + len(LARGE))
    assert len({case.name for case in sample}) == len({case.code for case in sample}) == 24
    assert "ROWS = 128\n" in sample[0].problem.source
    assert "ROWS = 128\n" in sample[0].code or "ROWS" not in sample[0].code
    with pytest.raises(ValueError, match="has no constant DEPTH"):
        resized(PROBLEM, {"DEPTH": 3})


def test_recovery_is_measured_to_the_next_holder_of_the_gpu() -> None:
    deserved = {"bad": Deserved(frozenset({"crash"}), None)}
    mixed = [
        done("fine", 1.0, gpu=0.01),
        done("bad", 2.0, status=Status.CRASH, gpu=0.1),
        done("elsewhere", 2.1),  # did not need the GPU
        done("next", 2.5, gpu=0.2),
    ]
    found = recovery(mixed, deserved)
    assert found["until_the_next_verdict"]["max"] == pytest.approx(0.5)
    assert found["until_the_gpu_is_held_again"]["max"] == pytest.approx(0.3)  # 2.5 - 0.2 - 2.0
    assert found["slot_of_the_lost"]["count"] == 1


def test_verdicts_are_compared_with_what_is_deserved_coverage_included() -> None:
    deserved = {"copy": Deserved(frozenset({"correct"}), (0.0, 0.2)), "oob": Deserved(frozenset({"out_of_bounds"}), None)}
    assert wrong(done("copy", coverage=0.1), deserved) is None
    assert wrong(done("copy", coverage=0.9), deserved) == "coverage in 0 to 0.2, not 0.90"
    assert wrong(done("oob"), deserved) == "out_of_bounds"
    assert wrong(done("honest"), deserved) is None
    assert wrong(Done(Case(PROBLEM, "honest", ""), None, "RunnerFailed: gone", 0.0), deserved) == "correct"


def test_hostile_candidates_are_repeated_as_other_texts_with_the_same_verdict() -> None:
    once, _ = hostile(1_000, "gpu")
    assert len({(case.problem.name, case.code) for case in once}) == len({case.name for case in once}) == 1_000
    files = {case.name.rpartition(" copy ")[0] for case in once}
    assert len(files) >= 60
    _, on_cpu = hostile(len(files), "cpu")
    _, on_gpu = hostile(len(files), "gpu")
    assert any(on_cpu[name] != on_gpu[name] for name in on_cpu)
    assert not {case.name for case in once} & {case.name for case in corpus(100)}
