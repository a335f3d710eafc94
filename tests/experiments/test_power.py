"""The command reads runs from several places, says what chance there is in them, and refuses what tells nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import rlkernel
from experiments.power import main
from tests.report.test_summary import row, write_run


def folder(place: Path, values: dict[tuple[str, int], float]) -> Path:
    """Finished runs, each with one value of Fast@1.2 after training."""
    place.mkdir()
    for (arm, seed), fast in values.items():
        directory = write_run(place / f"{arm}{seed}", arm, seed, [row(0, 0.0), row(10, fast, 2 * fast)], "measured")
        manifest = json.loads((directory / "manifest.json").read_text())
        (directory / "manifest.json").write_text(json.dumps({**manifest, "finished": "today"}))
    return place


def test_runs_of_two_cards(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = folder(tmp_path / "first", {("a", 0): 0.1, ("a", 1): 0.3, ("b", 0): 0.2, ("b", 1): 0.5})
    again = folder(tmp_path / "again", {("a", 0): 0.2, ("a", 1): 0.2})
    assert main([str(first), str(again), "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines()[:-1])) <= 100
    noise = {one["metric"]: one for one in json.loads((tmp_path / "out" / "power.json").read_text())["noise"]}
    assert "oracle_fraction" not in noise
    # a made twice: +0.1 and -0.1. Its means 0.15 and 0.25, b - a: 0.05 and 0.25.
    assert noise["fast_1.2"]["twins"] == {"value": pytest.approx(0.1), "degrees": 2}
    assert noise["fast_1.2"]["pairs"] == {"value": pytest.approx(0.02**0.5), "degrees": 1}
    page = (tmp_path / "out" / "power.md").read_text()
    assert "6 runs, measured time" in page and "| Fast@1.2, % | 15.8 | 14.1 | 10.0 | - |" in page
    assert "A/A intervals contain 0" in page


def test_numbers_that_are_checked_in_tell_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = Path(rlkernel.__file__).parent.parent / "docs" / "results" / "2026-11-21"
    # `trloo` is in both folders, and is counted once: nothing was made twice.
    assert main([str(results / "full_recipe"), str(results / "mismatch"), "--out", str(tmp_path)]) == 0
    dumped = json.loads((tmp_path / "power.json").read_text())
    assert dumped["timing"] == "measured" and all(one["twins"] is None for one in dumped["noise"])
    noise = {one["metric"]: one for one in dumped["noise"]}
    # Six seeds of grpo, trloo and hot, fewer of others; 13 problems.
    assert 0.02 < noise["fast_1.2"]["pairs"]["value"] < 0.3 and 0 < noise["fast_1.2"]["problems"] < 0.1
    assert "| Fast@1.2, % |" in (tmp_path / "power.md").read_text()


def test_runs_that_were_interrupted_are_left_out_with_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = folder(tmp_path / "runs", {("a", 0): 0.1, ("a", 1): 0.3})
    before_its_first_row, half = runs / "c0", write_run(runs / "d0", "d", 0, [row(0, 0.0)], "measured")
    before_its_first_row.mkdir()
    (before_its_first_row / "manifest.json").write_text((half / "manifest.json").read_text())
    assert main([str(runs), "--out", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().err == f"left out, not finished: {before_its_first_row}\nleft out, not finished: {half}\n"
    assert "2 runs, measured time" in (tmp_path / "out" / "power.md").read_text()


@pytest.mark.parametrize(
    ("values", "flags", "says"),
    [
        ({("a", 0): 0.1}, (), "every arm has one seed, made once: chance is seen in several seeds, or in runs made twice"),
        ({("a", 0): 0.1}, ("--aim", "0"), "--aim 0: give the difference to detect, above 0"),
    ],
)
def test_what_tells_nothing_is_one_line(
    values: dict[tuple[str, int], float], flags: tuple[str, ...], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(folder(tmp_path / "runs", values)), *flags]) == 2
    assert capsys.readouterr().err == f"error: {says}\n"
    assert main([]) == 2
    assert "give run directories" in capsys.readouterr().err
