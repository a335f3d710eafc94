from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rlkernel.errors import UsageError
from rlkernel.sources.load import load, load_for_training
from tests.sources.published import SUM, drkernel, kernelbench, kernelbook


def parquet(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(rows)), path)
    return path


def jsonl(path: Path, rows: Sequence[Any]) -> Path:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def test_parquet_and_jsonl_give_the_same_problems(tmp_path: Path) -> None:
    rows = [drkernel(k) for k in range(4)]
    found = load(str(parquet(tmp_path / "a.parquet", rows))).problems
    assert found == load(str(jsonl(tmp_path / "a.jsonl", rows))).problems
    assert [problem.name for problem in found] == [f"cuda_llm/RowSum-{k:08d}" for k in range(4)]
    assert all(problem.prompt and problem.level == 1 for problem in found)


def test_a_directory_of_tables_is_loaded_as_a_data_set_with_its_splits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    for split in ("train", "test"):
        parquet(tmp_path / "set" / f"{split}.parquet", [kernelbook(0), kernelbook(1)])
    names = [problem.name for problem in load(str(tmp_path / "set")).problems]
    assert names == ["kernelbook/RowSum-0", "kernelbook/RowSum-1", "kernelbook/RowSum-0~2", "kernelbook/RowSum-1~2"]


def test_the_hub_is_asked_for_the_split_and_the_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def stands_in(name: str, *, split: str, revision: str | None) -> list[dict[str, Any]]:
        asked.append((name, split, revision))
        return [kernelbench(1), kernelbench(2)]

    monkeypatch.setattr("datasets.load_dataset", stands_in)
    found = load("ScalingIntelligence/KernelBench:level_2@abc").problems
    assert asked == [("ScalingIntelligence/KernelBench", "level_2", "abc")]
    assert [problem.name for problem in found] == ["level2/1_Sum", "level2/2_Sum"]


def test_bad_rows_are_told_by_number_and_cause_and_the_others_are_kept(tmp_path: Path) -> None:
    rows = [drkernel(0), drkernel(1, reward_model={}), "{torn", drkernel(3), drkernel(4, extra_info={"entry_point": "X"})]
    loaded = load(str(jsonl(tmp_path / "t.jsonl", rows)))
    assert [problem.name for problem in loaded.problems] == ["cuda_llm/RowSum-00000000", "cuda_llm/RowSum-00000003"]
    assert [row.number for row in loaded.left_out] == [2, 3, 5]
    first, second, third, fourth = loaded.lines()
    assert first.endswith("t.jsonl: 2 problems, 3 rows left out")
    assert second == "  row 2: ground_truth is missing"
    assert third.startswith("  row 3: not JSON")
    assert fourth == "  row 5: no class X; the file has RowSum"


def test_only_where_all_rows_are_bad_is_the_table_refused(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "t.jsonl", [kernelbench(code="x = 1"), kernelbench(code="")])
    with pytest.raises(UsageError, match=r"t.jsonl: no row is a problem; row 1: it defines no Model; a problem has Model"):
        load(str(path))


def test_a_table_that_no_schema_knows_needs_its_columns(tmp_path: Path) -> None:
    path = str(jsonl(tmp_path / "t.jsonl", [{"task": SUM, "id": f"t{k}", "class": "RowSum", "text": "Go."} for k in range(2)]))
    with pytest.raises(UsageError, match=r"its columns are task, id, class, text, which no schema has.*--column reference=NAME"):
        load(path)
    found = load(path, ("reference=task", "name=id", "entry_point=class", "prompt=text")).problems
    assert [(problem.name, problem.prompt) for problem in found] == [("t0", "Go."), ("t1", "Go.")]
    assert "class Model" in found[0].source


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (("code",), "--column code: write PART=COLUMN with one of the parts reference, name"),
        (("size=code",), "--column size=code: write PART=COLUMN"),
        (("name=id",), "--column: say which column holds the references"),
        (("reference=absent",), "it has no column absent; its columns are task, id"),
    ],
)
def test_columns_that_do_not_fit(tmp_path: Path, columns: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load(str(jsonl(tmp_path / "t.jsonl", [{"task": SUM, "id": "a"}])), columns)


def test_a_quarter_validates_at_most_a_hundred_and_a_row_that_is_added_moves_none(tmp_path: Path) -> None:
    def split(count: int) -> dict[str, str]:
        return {p.name: p.split for p in load(str(jsonl(tmp_path / "t.jsonl", map(kernelbench, range(count))))).problems}  # type: ignore[arg-type]

    small = split(40)
    assert 4 <= list(small.values()).count("validation") <= 16
    assert split(41).items() >= small.items()
    assert list(split(800).values()).count("validation") == 100


def test_with_a_source_of_its_own_for_validation_the_rest_trains_and_no_problem_does_both(tmp_path: Path) -> None:
    train = jsonl(tmp_path / "train.jsonl", [drkernel(k) for k in range(4)])
    held = jsonl(tmp_path / "held.jsonl", [drkernel(2), drkernel(9, extra_info=drkernel(1)["extra_info"])])
    trained, validates = load_for_training(str(train), str(held))
    assert [problem.split for problem in (*trained.problems, *validates.problems)] == ["train"] * 3 + ["validation"] * 2
    # Row 2 validates; row 1 shares its name with another problem that does, and not its text.
    assert [problem.name[-10:] for problem in trained.problems] == ["m-00000000", "00000001~2", "m-00000003"]


@pytest.mark.parametrize("place", ["no/such.parquet", "no_such_directory", "a.parquet/b.jsonl"])
def test_a_source_that_is_not_there(place: str) -> None:
    with pytest.raises(UsageError, match=f"^{place}: .*(no such|there is no)"):
        load(place)


def test_a_source_that_is_not_there_is_told_with_the_flag_that_named_it(tmp_path: Path) -> None:
    train = jsonl(tmp_path / "train.jsonl", [drkernel(k) for k in range(4)])
    with pytest.raises(UsageError, match=r"^--validation /nope: there is no such file or directory; give"):
        load_for_training(str(train), "/nope")
    with pytest.raises(UsageError, match=r"^--problems /nope: there is no such file or directory; give"):
        load_for_training("/nope", str(train))
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"^--column is for tables"):
        load(str(tmp_path / "empty"), ("name=id",))


def test_names_may_be_numbers(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "t.jsonl", [{"task": SUM.replace("RowSum", "Model"), "id": k} for k in (7, 8)])
    assert [problem.name for problem in load(str(path), ("reference=task", "name=id")).problems] == ["7", "8"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"a,b\n", "t.csv: no table that is read here; give a .parquet or .jsonl file"),
        ("t.parquet", b"PAR", "t.parquet: cannot be loaded as a data set: ArrowInvalid: Parquet file size is 3 bytes"),
        ("t.jsonl", b"\xff\xfe\n", "t.jsonl: no row is a problem; row 1: not JSON: 'utf-8' codec can't decode byte 0xff"),
    ],
)
def test_a_file_that_is_no_table_is_one_line(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=re.escape(message)):
        load(str(tmp_path / name))
