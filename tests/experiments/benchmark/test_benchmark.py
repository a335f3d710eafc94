"""The benchmark as a command: a directory of solutions, an endpoint that fails as told, on problems in KernelBench's layout."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from experiments import arms
from experiments.benchmark.command import main
from experiments.benchmark.flags import Flags
from experiments.benchmark.plan import plan
from rlkernel.evaluator.cards import gpus
from rlkernel.evaluator.cards.gpus import Gpu
from rlkernel.evaluator.judging.sizes.fitting import Fitted
from rlkernel.policy import endpoint
from rlkernel.rollout import derive_seed
from tests import forked
from tests.policy.scripted_endpoint import KEY, Scripted, completion, serving

PROBLEM = """import torch
import torch.nn as nn
class Model(nn.Module):
    def forward(self, x):
        return {what}
batch_size = 512
dim = 4096
def get_inputs():
    return [torch.rand(batch_size, dim)]
def get_init_inputs():
    return []
"""
KERNEL = """import torch
import triton
import triton.language as tl
@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, {what}, mask=i < n)
class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    for level, name, what in (
        (1, "1_Double", "x * 2"),
        (1, "2_Chain", "torch.relu(x) * 2 + 1"),
        (2, "1_Big", "x * len(torch.unique(x, dim=0))"),
    ):
        folder = tmp_path / "kb" / f"level{level}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.py").write_text(PROBLEM.format(what=what))
    return tmp_path / "kb"


def command(suite: Path, out: Path, *arguments: str) -> list[str]:
    return ["--problems", str(suite), "--device", "cpu", "--jobs", "1", "--out", str(out), *arguments]


def results_of(out: Path) -> dict[str, Any]:
    (path,) = (out / "benchmark").glob("*/results.json")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_a_directory_of_solutions(suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s/level1/2_Chain").mkdir(parents=True)
    (tmp_path / "s/level1/1_Double.py").write_text(KERNEL.format(what="x * 2"))
    for sample, what in (("2", "tl.maximum(x, 0.0) * 2 + 1"), ("10", "tl.maximum(x, 0.0) * 2")):
        (tmp_path / f"s/level1/2_Chain/{sample}.py").write_text(KERNEL.format(what=what))
    arguments = command(suite, tmp_path / "o", "--solutions", str(tmp_path / "s"))
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines()[:-3])) <= 100
    assert (
        "modelled times; 2 of 3 problems scored, 1 not scored" in shown and "level2/1_Big: forward raises UnknownValue" in shown
    )
    found = results_of(tmp_path / "o")
    # Double: 1 of 1 as fast as one operator; Chain: 1 of 2, three operators in one.
    fast = found["scores"]["level 1"]["eager"]["fast"]["best"]
    assert fast["0"]["at_least"]["mean"] == pytest.approx((1 + 1 / 2) / 2)
    assert fast["2"]["at_least"]["mean"] == pytest.approx((0 + 1 / 2) / 2)
    assert found["complete"] and list(found["unscored"]) == ["level2/1_Big"] and found["timing"] == ["modelled"]
    assert found["manifest"]["sizes"]["compared_at"]["level1/1_Double"] == {"dim": 512, "batch_size": 256}
    (path,) = (tmp_path / "o/benchmark").glob("*/turns.parquet")
    table = pq.read_table(path)
    assert [(r["problem"], r["trajectory"], r["status"]) for r in table.to_pylist()] == [
        ("level1/1_Double", 1, "correct"),
        ("level1/2_Chain", 1, "correct"),
        ("level1/2_Chain", 2, "incorrect"),  # 10.py after 2.py
    ]
    assert json.loads(table.schema.metadata[b"rlkernel"])["versions"]["torch"]
    page = path.with_name("report.html")
    assert shown.splitlines()[-1] == f"report: {page}" and "<title>Benchmark of s</title>" in page.read_text()
    # Nothing is left to do: the same command shows the same, without an evaluator being asked.
    before = path.parent.joinpath("turns.jsonl").read_bytes()
    assert main(arguments) == 0
    assert capsys.readouterr().out == shown and path.parent.joinpath("turns.jsonl").read_bytes() == before


def test_problems_without_a_solution_are_named(suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s/2_Chain.py").write_text(KERNEL.format(what="x"))
    arguments = command(suite, tmp_path / "o", "--solutions", str(tmp_path / "s"), "--levels", "1", "--list")
    assert main(arguments) == 2
    found = "2_Chain.py is there without its level, move it to level1/2_Chain.py"
    assert capsys.readouterr().err == f"error: --solutions {tmp_path / 's'}: no solution of any of the problems: {found}\n"
    (tmp_path / "s/level1").mkdir()
    (tmp_path / "s/2_Chain.py").rename(tmp_path / "s/level1/2_Chain.py")
    assert main(arguments) == 0
    said = "1 problem has no solution: level1/1_Double (counted as a failure; --missing skip leaves it out)"
    assert said in capsys.readouterr().err.splitlines()
    assert main([*arguments, "--missing", "skip"]) == 0
    assert "no solution" not in capsys.readouterr().err


def author(body: dict[str, Any]) -> Any:
    """First without code, then wrong, then right; a function of the conversation alone."""
    turn = len(body["messages"]) // 2
    what = "tl.maximum(x, 0.0) * 2 + 1" if "relu" in body["messages"][0]["content"] else "x * 2"
    if turn == 0:
        return completion(None) if body["seed"] % 2 else completion("I would rather not.")
    code = KERNEL.format(what=what if turn >= 2 else "x * 3")
    return completion(f"Attempt {turn}.\n```python\n{code}```\n", prompt=100 * (turn + 1), made=50)


def scored(suite: Path, out: Path, script: Scripted, *more: str) -> list[str]:
    prices = ("--price-in", "1", "--price-out", "10", "--timeout", "60")
    turns = ("--levels", "1", "--turns", "3", "--context", "last:2", "--samples", "2")
    return command(suite, out, "--url", script.url, "--model", "org/scripted", "--key-env", "TEST_KEY", *prices, *turns, *more)


def rows_of(out: Path) -> list[dict[str, Any]]:
    """Sorted, without what the clock, the network and the evaluator's secret inputs decide."""
    (path,) = (out / "benchmark").glob("*/turns.jsonl")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        row.pop("seconds"), row.pop("feedback"), row["answer"].pop("requests")
        for name in ("seconds", "cached", "max_error", "detail"):
            row["evaluation"].pop(name)
    return sorted(rows, key=lambda row: (row["problem"], row["sample"], row["turn"]))


def test_a_multi_turn_benchmark_of_an_endpoint_that_fails_and_a_kill_in_the_middle(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TEST_KEY", KEY)

    async def no_pause(seconds: float) -> None:
        """Instead of waiting."""

    opened = endpoint.open_endpoint
    monkeypatch.setattr(endpoint, "open_endpoint", lambda *a, **k: opened(*a, **k, sleep=no_pause))
    faults = ["429", "garbage", "truncated", "", "500", "429:0", "", "", "shape", "503"]
    with serving(Scripted(author, faults)) as script:
        assert main(scored(suite, tmp_path / "whole", script)) == 0
        assert script.faults == [] and len(script.bodies) == 12 + 7
    shown = capsys.readouterr()
    found = results_of(tmp_path / "whole")
    assert found["complete"] and found["requests"] == 19
    # Turns 1 to 3 take 100, 200 and 300 tokens, and write 10, 50 and 50; twice for each of two problems.
    assert found["tokens"] == {"prompt": 4 * 600, "completion": 4 * 110, "answers_without_a_count": 0}
    assert found["cost"] == pytest.approx((2400 * 1 + 440 * 10) / 1e6)
    assert [turn["best"]["0"]["mean"] for turn in found["turns"]] == [0.0, 0.0, 1.0]
    rows = rows_of(tmp_path / "whole")
    assert [row["evaluation"]["status"] for row in rows] == ["no_code", "incorrect", "correct"] * 4
    assert [row["shown"] for row in rows[:3]] == [[], [0], [0, 1]]
    assert len({derive_seed(0, row["problem"], row["sample"]) for row in rows}) == 4
    files = [path for path in (tmp_path / "whole").rglob("*") if path.is_file()]
    assert not any(KEY.encode() in path.read_bytes() for path in files) and KEY not in shown.out + shown.err

    # The same in a process of its own, killed while it waits for its fifth answer, with no chance to clean up.
    with serving(Scripted(author, [""] * 4 + ["hang"])) as script:
        arguments = scored(suite, tmp_path / "killed", script, "--in-flight", "1", "--only", "level1/2_Chain")
        with open(os.devnull, "w") as nowhere:
            process = forked.start(["-m", "experiments.benchmark", *arguments], nowhere.fileno(), nowhere.fileno())
        try:
            assert script.held.wait(1200)
        finally:
            process.kill()
            process.join()
        assert len(rows_of(tmp_path / "killed")) <= 4
        assert main(arguments) == 0
    assert rows_of(tmp_path / "killed") == [row for row in rows if row["problem"] == "level1/2_Chain"]


def test_an_endpoint_that_is_down_leaves_everything_for_the_next_start(
    suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(Scripted(author, ["500:overloaded"] * 99)) as script:
        arguments = scored(suite, tmp_path / "o", script, "--attempts", "1", "--only", "level1/1_Double")
        assert main(arguments) == 75
    shown = capsys.readouterr()
    assert (
        "2 trajectories got no answer, the first: level1/1_Double, turn 1: 1 attempts, the last: HTTP 500: overloaded"
        in shown.err
    )
    assert "nothing was scored" in shown.out and not results_of(tmp_path / "o")["complete"]


def test_a_model_of_ours_goes_on_with_more_turns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = next(problem.name for problem in arms.BASE.problems if problem.split == "validation")
    arguments = ["--model", "small", "--only", name, "--device", "cpu", "--jobs", "1", "--samples", "2", "--out", str(tmp_path)]
    assert main(arguments) == 0
    first = rows_of(tmp_path)
    assert [(row["sample"], row["turn"]) for row in first] == [(0, 0), (1, 0)]
    assert all(len(row["answer"]["token_ids"]) == row["answer"]["completion_tokens"] > 0 for row in first)
    assert main([*arguments, "--turns", "2"]) == 0
    rows = rows_of(tmp_path)
    assert [row for row in rows if row["turn"] == 0] == first and len(rows) == 4
    for row in rows:  # the second prompt holds the first prompt, answer and feedback
        if row["turn"] == 1:
            before = rows[rows.index(row) - 1]["answer"]
            assert row["answer"]["prompt_tokens"] > before["prompt_tokens"] + before["completion_tokens"]
    assert "requests" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "say what to score"),
        (["--model", "m", "--solutions", "d"], "say what to score"),
        (["--url", "http://x/v1", "--solutions", "d"], "--url and --solutions exclude each other"),
        (["--url", "x/v1", "--model", "m"], "--url is not an http(s) address"),
        (["--solutions", "no/such"], "--solutions no/such: no such directory"),
        (["--model", "m", "--problems", "no/such.py"], "--problems no/such.py: there is no such file or directory"),
        (["--model", "m", "--only", "level1/none"], "--only level1/none: no such problem; names look like level1/"),
        (["--model", "./none"], "model './none': no such directory"),
        (["--model", "m", "--levels", "9"], "no problem is left"),
        (["--model", "m", "--context", "top:0"], "--context top:0: use full, or one of"),
        (["--model", "m", "--context", "full:3"], "--context full:3: use full, or one of"),
        (["--model", "m", "--turns", "0"], "--turns 0: at least 1"),
        (["--model", "m", "--reward", "money"], "--reward money: use one of speed"),
        (["--model", "m", "--profile", "abacus"], "--profile: unknown device profile 'abacus'"),
        (["--model", "m", "--samples", "many"], "--samples"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--device", "cpu", *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.startswith("error: ") and shown.err.count("\n") == 1 and said in shown.err


def test_the_list_says_at_which_sizes(suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command(suite, tmp_path / "o", "--model", "m", "--list")) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "level1/1_Double  compared at {'dim': 512, 'batch_size': 256}"
    assert lines[-1] == "3 problems, 1 of them do not fit"


def test_on_a_gpu_problems_stay_as_they_are_and_torch_compile_is_a_second_baseline(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cards = [Gpu(0, "GPU-1", "NVIDIA H200", 128 << 30, "1"), Gpu(1, "GPU-2", "NVIDIA H200", 120 << 30, "1")]
    monkeypatch.setattr(gpus, "select", lambda device, found=None: cards)
    flags = Flags(model="m", url="http://localhost/v1", problems=str(suite), levels=(1,), out=tmp_path / "o")
    found = plan(flags)
    assert found.evaluator.compiled and found.evaluator.limits.gpu_memory_bytes == 0, "what the cards have"
    assert [(f.whole, f.compared) for f in found.fitted if isinstance(f, Fitted)] == [({}, {})] * 2
    assert found.identity["device"] == ["NVIDIA H200"]  # the kind, not how many
    huge = suite / "level1" / "3_Huge.py"
    huge.write_text(PROBLEM.format(what="x * 2").replace("512", "2 ** 22"))  # 64 GiB: 11.5 times that is needed
    made = {f.problem.name: f.whole for f in plan(flags).fitted if isinstance(f, Fitted)}
    # 2^19 rows are 8 GiB, 92 GiB are needed and 0.94 * 120 allowed; 2^20 rows would need 184.
    assert made == {"level1/1_Double": {}, "level1/2_Chain": {}, "level1/3_Huge": {"batch_size": 1 << 19}}
