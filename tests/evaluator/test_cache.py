"""The file of verdicts that processes share."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from rlkernel.evaluator.cache import ResultCache, key
from rlkernel.types import Evaluation, Problem, Status

PROBLEM = Problem("p", 1, "train", "source")
BREAKS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\0 \t\ud800"
"""What some function or other takes for an end of line, for blank, or for no character at all."""


@given(st.text(alphabet='a"#' + BREAKS, max_size=12), st.text(alphabet='a"#' + BREAKS, max_size=12))
def test_two_texts_share_a_key_only_if_they_are_equal(one: str, other: str) -> None:
    assert (key(PROBLEM, one, "cpu", "") == key(PROBLEM, other, "cpu", "")) == (one == other)


def test_no_part_of_a_key_runs_into_the_next() -> None:
    assert key(PROBLEM, "a\0cpu", "x", "") != key(PROBLEM, "a", "cpu\0x", "")


FINE = Evaluation(Status.CORRECT, "fine", speedup=2.0, coverage=1.0, timing="modelled")


def test_what_another_process_found_meanwhile_is_found(tmp_path: Path) -> None:
    mine, other = ResultCache(tmp_path), ResultCache(tmp_path)
    assert mine.get("a") is None
    other.put("a", FINE)
    found = mine.get("a")
    assert found is not None and found.cached and found.speedup == 2.0
    mine.put("b", FINE)
    assert other.get("b") is not None
    assert len(ResultCache(tmp_path)) == 2


def test_a_line_that_is_still_being_written_is_read_when_it_is_whole(tmp_path: Path) -> None:
    writer, reader = ResultCache(tmp_path), ResultCache(tmp_path)
    writer.put("a", FINE)
    line = (tmp_path / "results.jsonl").read_bytes()
    (tmp_path / "results.jsonl").write_bytes(line[:40])
    assert reader.get("a") is None
    (tmp_path / "results.jsonl").write_bytes(line)
    assert reader.get("a") is not None


def test_timeouts_and_crashes_hold_for_one_process_and_lines_of_others_are_skipped(tmp_path: Path) -> None:
    cache = ResultCache(tmp_path)
    cache.put("slow", Evaluation(Status.TIMEOUT, "too slow"))
    cache.put("dead", Evaluation(Status.CRASH, "killed"))
    assert not (tmp_path / "results.jsonl").exists()
    found = cache.get("slow"), cache.get("dead")
    assert [(result.status, result.cached) for result in found if result] == [(Status.TIMEOUT, True), (Status.CRASH, True)]
    assert ResultCache(tmp_path).get("slow") is None
    (tmp_path / "results.jsonl").write_text('{"no": "key"}\nnot json\n')
    cache.put("a", FINE)
    assert len(ResultCache(tmp_path)) == 1


def test_a_torn_line_spoils_no_other_and_a_new_file_is_read_from_its_start(tmp_path: Path) -> None:
    reader, writer = ResultCache(tmp_path), ResultCache(tmp_path)
    writer.put("a", FINE)
    writer.put("b", FINE)
    assert reader.get("b") is not None
    file = tmp_path / "results.jsonl"
    file.write_bytes(file.read_bytes()[:-10])
    writer.put("c", FINE)
    found = ResultCache(tmp_path)
    assert len(found) == 2 and found.get("a") is not None and found.get("c") is not None and found.get("b") is None
    file.unlink()
    ResultCache(tmp_path).put("d", FINE)
    assert reader.get("d") is not None


def test_lines_of_many_writers_do_not_mix(tmp_path: Path) -> None:
    """Lines far longer than a buffer, from four processes at once."""
    long = Evaluation(Status.INCORRECT, "x" * 40_000)
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
        list(pool.map(put_many, [(tmp_path, f"writer{w}", long) for w in range(4)]))
    assert len(ResultCache(tmp_path)) == 4 * 50


def put_many(job: tuple[Path, str, Evaluation]) -> None:
    directory, name, result = job
    cache = ResultCache(directory)
    for i in range(50):
        cache.put(f"{name}-{i}", result)
