"""The tables and the figure of a comparison."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from matplotlib import pyplot as plt
from rich.console import Console

from rlkernel.report.compare import Pair, ProblemDifference, compare_arms
from rlkernel.report.compare_report import LEGEND, WIDTH, draw_differences, heading, largest, show
from tests.report.test_compare import LAST, write_run


def text(pairs: list[Pair], timing: str = "modelled", listed: int = 10) -> str:
    console = Console(width=WIDTH, file=io.StringIO(), record=True, highlight=False)
    show(pairs, timing, "fast_1.2", listed, console)
    return console.export_text()


def problem(name: str, difference: float) -> ProblemDifference:
    return ProblemDifference(name, 0.0, difference, difference, None)


def test_the_largest_differences_of_either_sign_are_listed_in_their_order() -> None:
    rows = [problem("a", 0.5), problem("b", 0.1), problem("c", 0.0), problem("d", -0.2), problem("e", -0.9)]
    assert [row.problem for row in largest(rows, 3)] == ["a", "d", "e"]
    assert [row.problem for row in largest(rows, 9)] == ["a", "b", "c", "d", "e"]
    assert largest(rows, 0) == []


def test_the_heading_says_what_is_compared() -> None:
    run = SimpleNamespace(manifest={"run": {"steps": 20}}, finished=True)
    base, other = SimpleNamespace(label="grpo", runs={0: run, 1: run}), SimpleNamespace(label="trloo", runs={1: run, 2: run})
    sides: dict[str, Any] = {"base": base, "other": other, "metrics": (), "problems": (problem("a", 0.0),)}
    one = Pair(**sides, seeds=(1,), steps=("20", "10 to 20"), left_out=0)
    assert heading(one, "measured") == [
        "trloo - grpo",
        "seed 1; step 10 to 20 against 20; 1 problems; measured time; seed 0 of grpo is left out; seed 2 of trloo is left out",
    ]


def test_tables_fit_and_show_what_is_written_as_it_is(tmp_path: Path) -> None:
    names = [f"level3/[bold]{'a_long_name_' * 8}{i}" for i in range(30)]
    runs = [
        write_run(tmp_path / f"{arm}{seed}", arm, seed, {name: (i * (seed + k)) % 7 / 6 for i, name in enumerate(names)})
        for k, arm in enumerate(("grpo", "multi_turn_trloo_with_mrs_and_prs", "third"))
        for seed in (0, 1, 2)
    ]
    pairs, timing = compare_arms(runs, "fast_1.2", LAST)
    shown = text(pairs, timing)
    assert max(map(len, shown.splitlines())) <= 100
    assert "multi_turn_trloo_with_mrs_and_prs - grpo" in shown and "third - grpo" in shown
    assert "level3/[bold]a_long_name" in shown and "and 20 with smaller differences" in shown
    assert "[low, high]: 95 %" in shown
    assert len(largest(pairs[0].problems, 10)) == 10


def test_no_problem_is_listed_where_none_is_asked_for(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / arm, arm, 0, {"a": value}) for arm, value in (("grpo", 0.25), ("trloo", 1.0))]
    pairs, timing = compare_arms(runs, "fast_1.2", LAST)
    lines = text(pairs, timing, listed=0).splitlines()
    assert not any(line.startswith("problem, ") for line in lines) and lines[-len(LEGEND) :] == list(LEGEND)
    assert any(line.startswith("problem, Fast@1.2") for line in text(pairs, timing, listed=1).splitlines())


def test_a_figure_of_three_arms_is_drawn(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / arm, arm, 0, {"a": value, "b": 0.5}) for arm, value in (("x", 0.0), ("y", 0.5), ("z", 1.0))]
    pairs, timing = compare_arms(runs, "fast_1.2", LAST)
    draw_differences(pairs, timing, "fast_1.2", tmp_path / "f.png")
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")
    data = (tmp_path / "f.png").read_bytes()
    assert struct.unpack(">II", data[16:24]) == (1500, 825)


def test_every_problem_is_a_point_and_every_arm_a_colour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Any] = []
    monkeypatch.setattr(plt, "close", kept.append)
    runs = [write_run(tmp_path / arm, arm, 0, {"a": value, "b": 0.5}) for arm, value in (("x", 0.0), ("y", 0.5), ("z", 1.0))]
    pairs, timing = compare_arms(runs, "fast_1.2", LAST)
    draw_differences(pairs, timing, "fast_1.2", tmp_path / "f.png")
    _, right = kept[0].axes
    # Besides the line at 0: y gains 0.5 on a, z gains 1; neither gains on b.
    assert [[float(y) for y in line.get_ydata()] for line in right.lines[1:]] == [[0.5, 0.0], [1.0, 0.0]]
    assert right.lines[1].get_color() != right.lines[2].get_color()
    assert [entry.get_text() for entry in kept[0].legends[0].get_texts()] == ["y", "z"]


@pytest.mark.parametrize(("seeds", "told"), [((0, 1), True), ((0,), False)])
def test_columns_have_the_names_of_the_arms_and_one_seed_has_no_p(tmp_path: Path, seeds: tuple[int, ...], told: bool) -> None:
    runs = [
        write_run(tmp_path / f"{arm}{seed}", arm, seed, {f"p{i}": k * i / 8 for i in range(8)})
        for k, arm in enumerate(("grpo", "trloo_with_a_long_name"))
        for seed in seeds
    ]
    pairs, timing = compare_arms(runs, "fast_1.2", LAST)
    lines = text(pairs, timing).splitlines()
    assert lines[2].split()[:2] == ["grpo", "...long_name"]
    # Seven problems of eight differ, all in one direction: 2 of 2^7 flips are as far out.
    (row,) = (line for line in lines if line.startswith("Fast@1.2  "))
    assert ("0.016" in row) is told
