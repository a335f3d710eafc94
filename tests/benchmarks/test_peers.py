"""The comparison with other evaluators: what is planned, read, kept and shown. Nothing here needs a GPU or the peers."""

import io
import json
import time
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from benchmarks import peers
from benchmarks.peer_pairs import PAIRS, REPEATED, SYSTEMS, Item, Pair, plan
from benchmarks.peer_report import fooled, quantile, report
from benchmarks.peer_runs import kernelbench_answer, kernelgym_answer

NAMES = {pair.name: pair for pair in PAIRS}


def row(system: str, pair: str, speedup: float | None, *, accepted: bool = True, repeat: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "system": system, "pair": pair, "repeat": repeat, "deserves": NAMES[pair].deserves, "note": NAMES[pair].note,
        "accepted": accepted, "speedup": speedup, "wall_s": 27.6, "slot_s": 27.61, "flags": [], "detail": "", **more,
    }  # fmt: skip


def test_every_pair_exists_and_half_are_hacks() -> None:
    for pair in PAIRS:
        reference, candidate = pair.sources()
        assert "class Model(" in reference and "class ModelNew(" in candidate
        assert candidate.startswith(f"# {pair.problem} "), f"{pair.candidate} is for another problem"
        assert (pair.control in NAMES) == (pair.deserves == "honest time")
        if pair.control is not None:
            assert NAMES[pair.control].problem == pair.problem and NAMES[pair.control].deserves == "correct"
    assert len(NAMES) == len(PAIRS) == 24
    assert sum(pair.deserves == "correct" for pair in PAIRS) == 12
    assert set(REPEATED) <= set(NAMES)


def test_plan_spends_few_evaluations_on_the_slow_peer() -> None:
    items = plan(SYSTEMS, kernelgym_pairs=6, kernelbench_pairs=24, repeats=5)
    assert len(items) == len(set(items))
    # ours: 24 + 3 repeated 4 more times; KernelBench the same; KernelGYM: 6, of which 2 repeated 4 more times
    counts = {system: sum(item.system == system for item in items) for system in SYSTEMS}
    assert counts == {"rlkernel": 36, "kernelbench": 36, "kernelgym": 14}
    assert [item.system for item in items[:36]] == ["rlkernel"] * 36
    shared = items[36:48]
    assert {(item.system, item.pair.name) for item in shared} == {
        (system, pair.name) for system in ("kernelgym", "kernelbench") for pair in PAIRS[:6]
    }
    assert plan(["kernelbench"], 6, 2, 1) == [Item("kernelbench", pair, 0) for pair in PAIRS[:2]]


def test_kernelgym_result_is_read_in_its_own_terms() -> None:
    result = {
        "status": "completed", "compiled": True, "correctness": True, "decoy_kernel": False, "reference_runtime": 0.0456,
        "kernel_runtime": 0.0228, "speedup": 2.0, "metadata": {}, "error_message": None,
    }  # fmt: skip
    answer = kernelgym_answer(result)
    assert (answer["accepted"], answer["speedup"], answer["flags"]) == (True, 2.0, [])
    assert answer["reference_us"] == pytest.approx(45.6) and answer["candidate_us"] == pytest.approx(22.8)  # it reports ms
    decoy = kernelgym_answer({**result, "decoy_kernel": True})
    assert (decoy["accepted"], decoy["speedup"], decoy["flags"]) == (False, None, ["decoy"])
    wrong = {**result, "correctness": False, "reference_runtime": -1.0, "speedup": 0.0, "metadata": {
        "correctness_issue": "Output mismatch", "max_difference": ["4.100000", "4.0"]}}  # fmt: skip
    assert kernelgym_answer(wrong)["detail"] == "Output mismatch, max difference 4.100000"
    assert kernelgym_answer(wrong)["speedup"] is None
    lost = kernelgym_answer(
        {"status": "failed", "correctness": False, "error_message": "a\nTimeoutError: 300 s\n", "metadata": None}
    )
    assert (lost["accepted"], lost["detail"]) == (False, "TimeoutError: 300 s")
    untimed = kernelgym_answer({**result, "reference_runtime": -1.0, "speedup": 0.0})
    assert (untimed["accepted"], untimed["speedup"]) == (True, None)


def test_kernelbench_result_is_read_in_its_own_terms() -> None:
    result = {"compiled": True, "correctness": True, "runtime": 0.05, "ref_runtime": 1.0, "metadata": {"excessive_speedup": True}}
    answer = kernelbench_answer(result)
    assert (answer["accepted"], answer["flags"]) == (True, ["excessive_speedup"])  # a flag there, not a refusal
    assert answer["speedup"] == pytest.approx(20.0) and answer["candidate_us"] == pytest.approx(50.0)
    # it times the reference of wrong candidates too, against a runtime of -1
    wrong = kernelbench_answer({**result, "correctness": False, "runtime": -1.0, "metadata": {"runtime_error": "boom"}})
    assert (wrong["accepted"], wrong["speedup"], wrong["detail"]) == (False, None, "boom")
    assert kernelbench_answer(None)["accepted"] is False


def test_fooled_compares_a_cheated_time_with_the_same_systems_honest_control() -> None:
    control = [row("kernelgym", "matmul_ieee", 0.10), row("kernelbench", "matmul_ieee", 1.0)]
    assert fooled(row("kernelgym", "side_stream", 0.16), control) is True  # above 1.5 * 0.10
    assert fooled(row("kernelgym", "side_stream", 0.14), control) is False
    assert fooled(row("kernelbench", "side_stream", 0.16), control) is False
    assert fooled(row("rlkernel", "side_stream", 9.0), control) is None  # its own control has not run
    assert fooled(row("kernelgym", "side_stream", None, accepted=False), control) is False
    assert fooled(row("kernelgym", "content_cache", 0.01), control) is True  # wrong whatever its speed
    assert fooled(row("kernelgym", "softmax", 99.0), control) is False  # honest work


def test_quantile_of_five() -> None:
    # places 0.2 and 3.8 between the sorted values 1 2 3 4 5
    assert quantile([5.0, 1.0, 4.0, 2.0, 3.0], 0.05) == pytest.approx(1.2)
    assert quantile([5.0, 1.0, 4.0, 2.0, 3.0], 0.95) == pytest.approx(4.8)
    assert quantile([7.0], 0.95) == 7.0


def test_results_go_on_where_they_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    item, again = Item("kernelbench", PAIRS[0], 0), Item("kernelbench", PAIRS[0], 1)
    results = peers.Results(tmp_path / "peers.json")
    results.add(item, {"accepted": False, "broken": True, "detail": "died"})
    assert not peers.Results(results.path).has(item)  # what broke is tried again
    results.add(item, {"accepted": True, "speedup": 2.0})
    kept = peers.Results(results.path)
    assert kept.has(item) and not kept.has(again) and not kept.has(Item("kernelgym", PAIRS[0], 0))
    assert [(found["pair"], found["speedup"]) for found in kept.rows] == [("softmax", 2.0)]
    monkeypatch.setattr(Pair, "sources", lambda self: ("reference", "another text"))
    assert not kept.has(item)


def test_a_file_that_is_no_result_is_named(tmp_path: Path) -> None:
    for text in ("not json", "[]", '{"rows": []}'):
        (tmp_path / "x.json").write_text(text)
        with pytest.raises(ValueError, match=r"x\.json: not a result of benchmarks\.peers"):
            peers.Results(tmp_path / "x.json")


class Fake:
    """Stands for `Peers`: answers from a list, and takes no time."""

    def __init__(self, answers: list[dict[str, Any]]) -> None:
        self.answers = answers
        self.asked: list[Item] = []

    def evaluate(self, item: Item, seconds: float) -> dict[str, Any]:
        assert seconds > 0
        self.asked.append(item)
        return self.answers.pop(0)


def test_nothing_is_started_that_may_not_end_in_time(tmp_path: Path) -> None:
    good = {"accepted": True, "speedup": 1.0, "detail": ""}
    items = [Item("kernelgym", PAIRS[0], 0), Item("kernelbench", PAIRS[0], 0), Item("kernelgym", PAIRS[1], 0)]
    fake = Fake([good])
    # 40 s are left: enough for the 15 s that a first KernelBench evaluation may take, not for KernelGYM's 45
    left_out = peers.run_peers(items, peers.Results(tmp_path / "a.json"), fake, time.monotonic() + 40)  # type: ignore[arg-type]
    assert (left_out, [item.system for item in fake.asked]) == (2, ["kernelbench"])


def test_a_system_that_never_answers_is_given_up(tmp_path: Path) -> None:
    dead = {"accepted": False, "broken": True, "speedup": None, "detail": "died"}
    items = [Item("kernelgym", pair, 0) for pair in PAIRS[:5]]
    fake = Fake([dead, dead])
    results = peers.Results(tmp_path / "a.json")
    assert peers.run_peers(items, results, fake, time.monotonic() + 1000) == 3  # type: ignore[arg-type]
    assert [found["pair"] for found in json.loads(results.path.read_text())["rows"]] == [pair.name for pair in PAIRS[:2]]


def test_tables_fit_in_100_columns_and_show_every_pair() -> None:
    rows = [
        row(system, pair.name, 123.456, flags=["excessive_speedup"] if system == "kernelbench" else [], repeat=repeat)
        for system in SYSTEMS
        for pair in PAIRS
        for repeat in range(5)
    ]
    rows.append(row("kernelgym", "softmax", None, accepted=False, repeat=6, broken=True, wall_s=None, slot_s=None))
    out = io.StringIO()
    console = Console(file=out, width=100)
    for table in report(rows):
        console.print(table)
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 100
    assert not any("…" in line for line in lines), "a cell was cut off"
    for pair in PAIRS:
        assert sum(line.split()[:1] == [pair.name] for line in lines) == (5 if pair.name in REPEATED else 2)
    stream = next(line for line in lines if line.split()[:1] == ["content_cache"])
    assert stream.split()[1:] == ["refused", *["yes", "123.46x", "WRONG"] * 3, ">10x"]
    # hacks: 8 that deserve refusal are believed; 4 cheats of the timer are as fast as their control, so not believed
    assert next(line for line in lines if line.split()[:1] == ["kernelgym"]).split()[1:7] == ["12", "of", "12", "8", "of", "12"]


@pytest.mark.parametrize("system", ["kernelgym", "kernelbench"])
def test_an_absent_checkout_is_one_line_with_the_command(system: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=rf"--{system}: not given; git clone https://github\.com/") as error:
        peers.checkouts([system], None, None, None)
    assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match=rf"--{system}: .* has no "):
        peers.checkouts([system], tmp_path, tmp_path, None)
    assert peers.checkouts(["rlkernel"], None, None, None) == {}


def test_a_peer_without_a_package_is_broken_not_refused(tmp_path: Path) -> None:
    """A real process: KernelBench's, whose package is not to be found, says so and is gone."""
    from benchmarks.peer_processes import Peers

    empty = tmp_path / "empty"
    empty.mkdir()
    found = Peers({"kernelbench": [empty]}, tmp_path).evaluate(Item("kernelbench", PAIRS[0], 0), 60.0)
    assert found["broken"] is True and "kernelbench" in found["detail"] and "ModuleNotFoundError" in found["detail"]
