"""The whole command on a small table: what it keeps, what it names, and that it goes on where it was stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from envs.problems import SUITE
from experiments import prepare_problems
from experiments.preparation import looked
from rlkernel.sources.load import load
from tests.sources.published import SUM, drkernel


def disguised(name: str) -> str:
    """A problem of the suite with other names and sizes."""
    text = (SUITE / f"{name}.py").read_text()
    for old, new in (
        ("self.weight", "self.w0"),
        ("self.bias", "self.b0"),
        ("Model(", "Model("),
        (" x", " first"),
        ("(x", "(first"),
    ):
        text = text.replace(old, new)
    return "\n".join(line for line in text.splitlines() if not line.startswith("SMALL")) + "\n"


def row(k: int, source: str, entry_point: str | None = None) -> dict[str, Any]:
    extra = {"entry_point": entry_point, "level": None, "module_name": f"m{k}", "uuid": f"{k:08d}"}
    return drkernel(k, reward_model={"ground_truth": source, "style": "rule"}, extra_info=extra)


ZERO = SUM.replace("x.sum(self.dim) * 2.0", "x.sum(self.dim) * 0.0")
RANDOM = SUM.replace("* 2.0", "* torch.rand(4)")
FAILS = SUM.replace("x.sum(self.dim)", "x.sum(self.dim + 7)")
KILLS = SUM.replace("        self.dim = dim", "        self.dim = dim\n        import os; os.kill(os.getpid(), 9)")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    sources = [SUM, ZERO, RANDOM, FAILS, KILLS, SUM]
    rows = [row(k, source, "RowSum") for k, source in enumerate(sources)]
    rows += [row(10, disguised("level1/softmax"))]
    path = tmp_path / "train.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in rows) + "{torn\n")
    return path


def test_a_table_is_prepared_and_the_same_command_asks_nothing_again(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    held_out = tmp_path / "held_out" / "level1"
    held_out.mkdir(parents=True)
    (held_out / "1_softmax.py").write_text((SUITE / "level1/softmax.py").read_text())
    out = tmp_path / "out" / "t.parquet"
    arguments = [str(table), "--out", str(out), "--against", str(held_out.parent), "--jobs", "2"]
    assert prepare_problems.main([*arguments]) == 0
    assert "t.parquet: 3 of 8 rows" in capsys.readouterr().out
    rows = {one["name"]: one for one in pq.read_table(out).to_pylist()}
    assert sorted(rows) == ["cuda_llm/m0-00000000", "cuda_llm/m2-00000002", "cuda_llm/m5-00000005"]
    first = rows["cuda_llm/m0-00000000"]
    assert (first["operators"], first["random"], first["checked"]) == (["aten.sum", "aten.mul"], False, True)
    assert rows["cuda_llm/m2-00000002"]["random"]
    assert 4 < first["reference_us"] < 6  # two launches of 2.5 us
    page = out.with_suffix(".md").read_text()
    for line in (
        "| broken | 2 |",
        "- cuda_llm/m1-00000001: output 0 is within 0.0001 of zero",
        "- cuda_llm/m10-00000010: it is level1/1_softmax in other clothes",
        "| 5 to 10 us | 3 |",
        "- row 8: not JSON",
    ):
        assert line in page
    # The prepared table is a source, prompts included.
    problems = load(str(out)).problems
    assert [problem.name for problem in problems] == sorted(rows, key=list(rows).index) and all(p.prompt for p in problems)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("everything is known")

    monkeypatch.setattr(looked, "open_pool", refuse)
    assert prepare_problems.main([*arguments, "--deterministic"]) == 0
    assert len(load(str(out)).problems) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give one SOURCE and --out FILE.parquet"),
        (["a.jsonl", "--out", "b.csv"], "give one SOURCE and --out FILE.parquet"),
        (["a.jsonl", "--out", "b.parquet"], "a.jsonl: there is no such file"),
    ],
)
def test_unusable_arguments(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert prepare_problems.main(arguments) == 2
    assert message in capsys.readouterr().err
