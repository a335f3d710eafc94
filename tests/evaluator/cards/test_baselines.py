"""The store of reference timings: whose they are, what counts as drift, what survives damage."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rlkernel.evaluator.cards.baselines import COLUMNS, Baseline, BaselineStore, Provenance, drift
from rlkernel.evaluator.cards.gpus import Gpu, Reading
from rlkernel.evaluator.version import baseline_version
from rlkernel.types import Precision, Problem

HERE = Provenance(
    gpu_name="NVIDIA H200", gpu_uuid="GPU-12345678-9abc", driver="580.1", torch="2.13.0", triton="3.7.1", python="3.12.1",
    precision=Precision.PYTORCH, sm_mhz=1980, memory_mhz=3201, when="2027-01-02T03:04:05+00:00", evaluator="0123",
)  # fmt: skip
FIRST = Baseline(100.0, 99.0, 101.0, 80.0, 50, HERE)
RELU = Problem("mine/relu", 1, "train", "import torch\n")
GELU = Problem("mine/gelu", 1, "train", "import torch  # gelu\n")


def test_what_is_put_is_found_in_the_file_by_the_next_store(tmp_path: Path) -> None:
    path = tmp_path / "new" / "baselines.jsonl"
    BaselineStore(path).put(RELU, FIRST)
    store = BaselineStore(path)
    assert store.get(RELU, HERE) == FIRST
    assert store.get(GELU, HERE) is None
    assert len(store) == 1


def test_without_a_file_it_is_kept_in_memory() -> None:
    store = BaselineStore(None)
    store.put(RELU, FIRST)
    assert store.get(RELU, HERE) == FIRST


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"gpu_uuid": "GPU-99999999-9abc"},
        {"gpu_name": "NVIDIA H100"},
        {"driver": "590.1"},
        {"torch": "2.14.0"},
        {"triton": "3.8.0"},
        {"precision": Precision.TF32},
    ],
)
def test_another_machine_or_setting_is_absent(elsewhere: dict[str, Any]) -> None:
    store = BaselineStore(None)
    store.put(RELU, FIRST)
    assert store.get(RELU, replace(HERE, **elsewhere)) is None


def test_clocks_dates_python_and_names_are_no_part_of_the_key() -> None:
    store = BaselineStore(None)
    store.put(RELU, FIRST)
    now = replace(HERE, sm_mhz=1755, memory_mhz=None, when="2028-01-01T00:00:00+00:00", evaluator="4567", python="3.11.7")
    assert store.get(replace(RELU, name="yours/relu"), now) == FIRST


@pytest.mark.parametrize(
    ("now", "low", "high", "expected"),
    [
        (104.0, 103.0, 105.0, 0.04),  # 104 / 100 - 1, and 103 > 101
        (90.0, 89.0, 91.0, -0.1),  # 90 / 100 - 1, and 91 < 99
        (104.0, 100.5, 108.0, None),  # the intervals meet: 100.5 < 101
        (96.0, 90.0, 99.0, None),  # they touch at 99
        (102.5, 102.4, 102.6, None),  # apart, but 2.5 % is within 3 %
        (100.0, 99.0, 101.0, None),
    ],
)
def test_drift_is_a_change_of_over_three_percent_outside_both_intervals(
    now: float, low: float, high: float, expected: float | None
) -> None:
    assert drift(FIRST, now, low, high) == (None if expected is None else pytest.approx(expected))


def test_after_drift_both_timings_are_kept_and_the_later_one_counts(tmp_path: Path) -> None:
    path = tmp_path / "baselines.jsonl"
    later = Baseline(120.0, 119.0, 121.0, None, 60, replace(HERE, when="2027-02-02T00:00:00+00:00", sm_mhz=1650))
    store = BaselineStore(path)
    store.put(RELU, FIRST)
    store.put(RELU, later)
    for reader in (store, BaselineStore(path)):
        assert reader.get(RELU, HERE) == later
        assert reader.history(RELU, HERE) == (FIRST, later)
        assert len(reader) == 1
    assert store.history(GELU, HERE) == ()


@pytest.mark.parametrize(
    "damage",
    ['{"problem": "mine/re', '{"problem": "mine/relu"}\n', "null\n", "\x00\x01\n", "[" * 200_000 + "\n"],
    ids=["torn", "without a baseline", "null", "not a text", "too deep"],
)
def test_a_damaged_line_costs_itself_alone(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "baselines.jsonl"
    BaselineStore(path).put(RELU, FIRST)
    with path.open("a") as file:
        file.write(damage)
    BaselineStore(path).put(GELU, FIRST)
    store = BaselineStore(path)
    assert store.get(RELU, HERE) == store.get(GELU, HERE) == FIRST
    assert len(store) == 2


@pytest.mark.parametrize("times", [(100.0, 101.0, 102.0), (100.0, 99.0, 99.5), (0.0, 0.0, 1.0), (float("nan"), 1.0, 2.0)])
def test_times_out_of_order_are_refused_and_never_read(times: tuple[float, float, float], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected 0 < low <= time <= high"):
        Baseline(*times, None, 10, HERE)
    with pytest.raises(ValueError, match="expected 0 < low <= time <= high"):
        drift(FIRST, *times)
    path = tmp_path / "baselines.jsonl"
    BaselineStore(path).put(RELU, FIRST)
    row = json.loads(path.read_text())
    row["baseline"] |= dict(zip(("eager_us", "eager_low_us", "eager_high_us"), times, strict=True))
    path.write_text(json.dumps(row) + "\n")
    assert len(BaselineStore(path)) == 0


def test_describe_has_one_row_per_key_with_the_latest() -> None:
    store = BaselineStore(None)
    store.put(RELU, FIRST)
    store.put(RELU, Baseline(120.0, 117.0, 121.2, None, 60, replace(HERE, sm_mhz=None)))
    store.put(GELU, FIRST)
    rows = store.describe()
    when = "2027-01-02T03:04:05+00:00"
    assert [row[0] for row in rows] == ["mine/gelu", "mine/relu"]
    assert rows[0] == (
        "mine/gelu", "NVIDIA H200 GPU-12345678", "100.00", "1.0 %", "80.00", "50", "pytorch", "1980", "2.13.0", "3.7.1", when,
        "1",
    )  # fmt: skip
    # The wider side: (120 - 117) / 120 = 2.5 %.
    assert rows[1][2:8] == ("120.00", "2.5 %", "-", "60", "pytorch", "-")
    assert rows[1][-1] == "2"
    assert len(COLUMNS) == len(rows[0])


def test_provenance_of_here() -> None:
    card = Gpu(0, "GPU-1", "NVIDIA H200", 1, "580.1")
    reading = Reading(1_800_000_000.0, 1980, 3201, 40, 100.0, (), 0, 0, (), 0)
    where = Provenance.here(card, reading, precision=Precision.TF32)
    assert (where.gpu_name, where.gpu_uuid, where.driver, where.precision) == ("NVIDIA H200", "GPU-1", "580.1", Precision.TF32)
    assert (where.sm_mhz, where.memory_mhz, where.when) == (1980, 3201, "2027-01-15T08:00:00+00:00")
    assert where.evaluator == baseline_version()
    assert where.torch.startswith("2.") and where.triton.startswith("3.")
