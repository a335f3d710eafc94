"""The figure of an experiment: whose values are drawn, and how."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from rlkernel.errors import UsageError
from rlkernel.report.curves import PANELS, Panel
from rlkernel.report.figure import BANDS, COLOURS, colours, draw_curves
from rlkernel.report.summary import RunRecord

Drawn = Callable[..., Figure]


def run(arm: str, seed: int, *values: float, timing: str = "modelled", **more: float) -> RunRecord:
    """A run measured at steps 0, 10, 20, ... whose metrics all have the given values."""
    keys = [key for panel in PANELS for key, _, _ in panel.lines]
    validation = tuple({"step": 10 * i, **dict.fromkeys(keys, value), **more} for i, value in enumerate(values))
    training = tuple({"step": i, "loss": 2.0 * i} for i in range(3))
    return RunRecord(Path(arm), arm, seed, timing, {"run": {"model": "small"}}, validation, training)


@pytest.fixture
def drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Drawn:
    """Draws, and gives the figure that was saved."""
    kept: list[Any] = []
    monkeypatch.setattr(plt, "close", kept.append)

    def make(*arguments: Any, **options: Any) -> Figure:
        draw_curves(arguments[0], tmp_path / "f.png", *arguments[1:], **options)
        found: Figure = kept.pop()
        return found

    return make


def lines(figure: Figure, axis: int = 0) -> list[tuple[float, list[float]]]:
    """The width and the values of every line of a panel."""
    return [(line.get_linewidth(), [float(y) for y in line.get_ydata()]) for line in figure.axes[axis].lines]  # type: ignore[union-attr]


def test_the_file_is_a_png_of_the_documented_size(tmp_path: Path) -> None:
    draw_curves([run("a", 0, 0.0, 1.0)], tmp_path / "f.png")
    data = (tmp_path / "f.png").read_bytes()
    assert data.startswith(b"\x89PNG") and struct.unpack(">II", data[16:24]) == (1500, 1080)


def test_seeds_are_thin_and_their_mean_is_bold(drawn: Drawn) -> None:
    figure = drawn([run("a", 0, 0.0, 1.0), run("a", 1, 0.5, 2.0)])
    assert lines(figure) == [(0.8, [0.0, 1.0]), (0.8, [0.5, 2.0]), (2.4, [0.25, 1.5])]


def test_the_mean_stands_only_where_every_seed_was_measured(drawn: Drawn) -> None:
    figure = drawn([run("a", 0, 0.0, 1.0, 4.0), run("a", 1, 0.5, 2.0)])
    assert lines(figure)[-1] == (2.4, [0.25, 1.5])


def test_ranges_are_shaded_as_long_as_they_do_not_hide_each_other(drawn: Drawn) -> None:
    for count, bands in ((BANDS, BANDS), (BANDS + 1, 0)):
        figure = drawn([run(f"arm{i}", seed, 0.0, i + seed) for i in range(count) for seed in (0, 1)])
        assert len(figure.axes[0].collections) == bands


def test_a_metric_that_a_seed_lacks_is_left_out(drawn: Drawn) -> None:
    panels = (Panel("Mine", (("mine", "-", "mine"), ("reward", "--", "reward")), False), *PANELS[1:])
    figure = drawn([run("a", 0, 0.0, 1.0, mine=3.0), run("a", 1, 0.0, 1.0)], panels)
    assert [width for width, _ in lines(figure)] == [0.8, 0.8, 2.4]
    assert drawn([run("a", 0, 0.0, 1.0, mine=3.0)], panels).axes[0].lines[0].get_ydata()[0] == 3.0


def test_a_metric_of_the_training_has_its_own_steps(drawn: Drawn) -> None:
    panels = (Panel("Loss", (("train/loss", "-", ""),), False), *PANELS[1:])
    assert lines(drawn([run("a", 0, 0.0, 1.0)], panels)) == [(2.4, [0.0, 2.0, 4.0])]


def test_arms_have_the_same_colours_everywhere(drawn: Drawn) -> None:
    names = [f"arm{i}" for i in range(len(COLOURS) + 1)]
    chosen = colours(names)
    assert list(chosen.values()) == [*COLOURS, COLOURS[0]]
    figure = drawn([run(name, 0, 0.0, 1.0) for name in names[:3]])
    assert [line.get_color() for line in figure.axes[2].lines[::2]] == list(COLOURS[:3])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [f"{name} (1 seed)" for name in names[:3]]


def test_the_title_says_how_time_was_taken_and_of_what_policy(drawn: Drawn) -> None:
    assert drawn([run("a", 0, 1.0)]).get_suptitle() == "Validation split, modelled time; policy small"
    assert drawn([run("a", 0, 1.0)], caption="mine").get_suptitle() == "Validation split, modelled time; mine"
    with pytest.raises(UsageError, match="mix measured and modelled times"):
        drawn([run("a", 0, 1.0), run("b", 0, 1.0, timing="measured")])
