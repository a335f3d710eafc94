"""Charts: where values are drawn, what the cursor reads, and what is left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rlkernel.commands.metrics import TOGETHER
from rlkernel.report.chart import Chart, charts, missing
from rlkernel.report.curves import CORRECT, PANELS, TRAINING_PANELS, Panel, by_split, comparable_panels, curve
from rlkernel.report.summary import RunRecord

REWARD = Panel("Mean reward", (("reward", "-", ""),), False)
FAST = Panel("Fast@1", (("fast_1", "-", "any turn"), ("fast_1_turn_1", "--", "first turn")), True)


def run(arm: str, seed: int, *values: float, key: str = "reward", reward: Any = None) -> RunRecord:
    """Validated at steps 0, 10, ...; trained for two steps."""
    rows = tuple({"step": 10 * i, key: value} for i, value in enumerate(values))
    training = ({"step": 1, "loss": -1.0}, {"step": 2, "loss": 3.0})
    return RunRecord(Path(arm), arm, seed, "modelled", {"run": {"reward": reward}}, rows, training)


def only(runs: list[RunRecord], panel: Panel) -> Chart:
    (found,) = charts(runs, (panel,), "step")
    return found


def test_a_curve_has_means_where_all_seeds_were_measured() -> None:
    found = curve([run("a", 0, 0.0, 1.0, 5.0), run("a", 1, 1.0, 2.0)], "reward")
    assert found is not None
    assert found.means == {0: 0.5, 10: 1.5} and found.ranges == {0: (0.0, 1.0), 10: (1.0, 2.0)}
    assert curve([run("a", 0, 0.0)], "fast_1") is None and curve([run("a", 0, 0.0)], "train/loss") is not None


def test_values_are_drawn_at_their_places() -> None:
    found = only([run("a", 0, 0.0, 2.0, 4.0)], REWARD)
    # x from 50 to 428, y from 220 (0) to 12 (4).
    assert found.curves[0].mean == "50.0,220.0 239.0,116.0 428.0,12.0"
    assert found.curves[0].marks == ((50.0, 220.0), (239.0, 116.0), (428.0, 12.0))
    assert [(tick.at, tick.label) for tick in found.y_ticks] == [
        (220.0, "0"), (168.0, "1"), (116.0, "2"), (64.0, "3"), (12.0, "4"),
    ]  # fmt: skip
    assert [(tick.at, tick.label) for tick in found.x_ticks] == [(50.0, "0"), (239.0, "10"), (428.0, "20")]
    assert found.about == "Mean reward over steps: a from 0 to 4"


def test_the_cursor_reads_the_means_of_every_arm() -> None:
    found = only([run("a", 0, 0.0, 1.0), run("a", 1, 1.0, 2.0), run("b", 0, 4.0)], REWARD)
    readings = json.loads(found.readings)
    assert readings["steps"] == [0, 10] and readings["x"] == [50.0, 428.0]
    assert [(line["label"], line["colour"], line["values"]) for line in readings["lines"]] == [
        ("a", 0, ["0.5", "1.5"]),
        ("b", 1, ["4", None]),
    ]
    a, b = found.curves
    assert len(a.seeds) == 2 and a.band.split()[0] == "50.0,220.0" and (b.seeds, b.band) == ((), "")


def test_shares_are_percent_and_styles_have_a_legend() -> None:
    found = only([run("a", 0, 0.1, 0.5, key="fast_1_turn_1")], FAST)
    assert found.legend == (("first turn", True),) and found.curves[0].dashed
    assert json.loads(found.readings)["lines"][0]["values"] == ["10.0 %", "50.0 %"]
    assert all(tick.label.endswith(" %") for tick in found.y_ticks)


def test_values_below_zero_and_orders_of_magnitude_stay_inside() -> None:
    loss = only([run("a", 0, 0.0)], TRAINING_PANELS[0])
    assert loss.curves[0].marks == ()  # a training of two steps has a value at each
    for panel, runs in (
        (TRAINING_PANELS[0], [run("a", 0, 0.0)]),
        (Panel("x", (("reward", "-", ""),), False, log=True), [run("a", 0, 0.0, 9000.0)]),
    ):
        points = [float(point.split(",")[1]) for point in only(runs, panel).curves[0].mean.split()]
        assert all(12 <= y <= 220 for y in points) and len(set(points)) == 2


def test_a_training_of_one_step_is_a_mark_in_the_middle() -> None:
    of = RunRecord(Path("a"), "a", 0, "modelled", {"run": {"reward": None}}, (), ({"step": 1, "loss": 2.0},))
    loss = only([of], TRAINING_PANELS[0])
    # x halfway between 50 and 428, y at the top: a line through one point is not seen.
    assert loss.curves[0].marks == ((239.0, 12.0),)
    assert [(tick.at, tick.label) for tick in loss.x_ticks] == [(239.0, "1")]


def test_what_is_0_throughout_has_no_scale() -> None:
    found = only([run("a", 0, 0.0, 0.0)], REWARD)
    assert found.zero and [(tick.at, tick.label) for tick in found.y_ticks] == [(220.0, "0")]
    assert not only([run("a", 0, 0.0, 1.0)], REWARD).zero


def test_what_nobody_recorded_is_named_and_what_is_no_number_is_left_out() -> None:
    runs = [run("a", 0, 0.0, 1.0), run("b", 0, float("nan"), 1.0)]
    assert [chart.title for chart in charts(runs, (REWARD, FAST), "step")] == ["Mean reward"]
    assert [line["label"] for line in json.loads(only(runs, REWARD).readings)["lines"]] == ["a"]
    assert missing(runs, TRAINING_PANELS[:2]) == ("Entropy, nats per token",)


def test_where_arms_are_paid_differently_no_reward_is_drawn() -> None:
    runs = [run("a", 0, 1.0, reward={"cap": 1}), run("b", 0, 1.0, reward={"cap": 3})]
    assert comparable_panels(runs, PANELS) == (CORRECT, *PANELS[1:])
    assert [p.title for p in comparable_panels(runs, TRAINING_PANELS)] == [
        p.title for p in TRAINING_PANELS if p.title != "Spread of reward within groups"
    ]
    assert comparable_panels(runs[:1], PANELS) == PANELS


def test_what_the_page_about_diverging_runs_reads_is_drawn() -> None:
    read = {f"train/{name}" for name in (*TOGETHER, "kl_k1", "kl_k3", "grad_norm_turn_1")}
    read -= {"train/reward", "train/kept_tokens", "train/cache_hit_rate"}  # the page compares these with others as numbers
    assert len(read) > 10
    row = {key.removeprefix("train/"): 0.5 for key in read}
    training = tuple({"step": step, **row} for step in (1, 2))
    of = RunRecord(Path("a"), "a", 0, "modelled", {"run": {"reward": None}}, ({"step": 0, "reward": 1.0},), training)
    drawn = {chart.title for chart in charts([of], TRAINING_PANELS, "step")}
    for key in read:
        assert any(key in [line[0] for line in panel.lines] and panel.title in drawn for panel in TRAINING_PANELS), key


def test_numbers_of_the_training_are_drawn_once_and_beside_each_other() -> None:
    norm = Panel("Gradient norm", (("train/grad_norm", "-", "norm"),), False, log=True)
    validation, training = by_split((*PANELS, norm))
    assert validation == PANELS
    assert [panel for panel in training if panel.title == "Gradient norm"] == [norm], "the experiment's own scale stands"
    keys = [key for panel in TRAINING_PANELS for key, _, _ in panel.lines]
    assert len(keys) == len(set(keys))


def test_what_is_numerics_alone_is_drawn_as_0() -> None:
    panel = Panel("KL", (("reward", "-", ""),), False, floor=1e-6)
    small = only([run("a", 0, 4e-13, -6e-7)], panel)
    assert small.title == "KL (below 1e-06: numerics alone)" and small.curves[0].mean == "50.0,220.0 428.0,220.0"
    assert json.loads(small.readings)["lines"][0]["values"] == ["0", "0"]
    large = only([run("a", 0, 4e-13, 1.0)], panel)
    assert large.title == "KL" and large.curves[0].mean == "50.0,220.0 428.0,12.0"


def test_large_ticks_are_written_out() -> None:
    found = only([run("a", 0, 0.0, 90.0)], Panel("x", (("reward", "-", ""),), False, log=True))
    assert [tick.label for tick in found.y_ticks] == ["0", "1", "10", "100"]
