"""Which conversations are kept, and that the table is one that a cold start reads."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from envs.problems import load_suite
from envs.world.suite import world_problems
from experiments import prepare_conversations
from experiments.preparation.choice import Choice, choose
from experiments.preparation.exchanges import Exchange, Told, trajectories_of
from experiments.tuning.conversations import read_conversations
from rlkernel.benchmark.trajectories import Ledger, TurnRow
from rlkernel.environment.kernel_env import KernelEnvironment
from rlkernel.policy.writer import Answer
from rlkernel.runs.log import TEXT_LIMIT
from rlkernel.types import Evaluation, Problem, Status


def facts(speedup: float | None, coverage: float = 1.0) -> Evaluation:
    """Correct at this speedup; None: incorrect."""
    if speedup is None:
        return Evaluation(Status.INCORRECT, "values differ")
    return Evaluation(Status.CORRECT, "", speedup=speedup, coverage=coverage, timing="modelled")


def told(*speedups: float | None, problem: str = "p", held_out: bool = False, name: str = "", **changes: Any) -> Told:
    exchanges = tuple(Exchange(f"{name}a{k}", facts(s), f"f{k}", whole=True) for k, s in enumerate(speedups))
    shown = changes.get("shown") or tuple(tuple(range(k)) for k in range(len(speedups)))
    return Told(problem, f"write {problem}", changes.get("exchanges") or exchanges, shown, held_out, "b")


def texts(kept: Any) -> list[list[str]]:
    return [[message["content"] for message in row["messages"]] for row in kept.rows]


def test_a_conversation_ends_with_its_fastest_good_turn() -> None:
    kept = choose([told(None, 1.5, 2.0, 1.1)], Choice())
    assert texts(kept) == [["write p", "a0", "f0", "a1", "f1", "a2"]]
    assert [message["role"] for message in kept.rows[0]["messages"]] == ["user", "assistant"] * 3
    assert {key: kept.rows[0][key] for key in ("problem", "turns", "status", "speedup", "timing")} == {
        "problem": "p", "turns": 3, "status": "correct", "speedup": 2.0, "timing": "modelled"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("choice", "last", "cause"),
    [
        (Choice(speedup=1.8), ["a2"], ""),
        (Choice(speedup=2.5), [], "no turn is good enough"),
        (Choice(turns=(1, 2)), ["a1"], ""),
        (Choice(turns=(5, 9)), [], "its length"),
        (Choice(correct=False, turns=(1, 1)), ["a0"], ""),
    ],
)
def test_what_a_turn_must_be(choice: Choice, last: list[str], cause: str) -> None:
    kept = choose([told(None, 1.5, 2.0, 1.1)], choice)
    assert [found[-1] for found in texts(kept)] == last
    assert list(kept.causes) == ([cause] if cause else [])


def test_a_conversation_holds_what_the_policy_saw() -> None:
    kept = choose([told(1.0, None, 2.0, shown=((), (0,), (0,)))], Choice(turns=(2, 2)))
    assert texts(kept) == [["write p", "a0", "f0", "a2"]]


def test_what_was_cut_off_what_validates_and_what_is_there_already_is_left_out() -> None:
    cut = (Exchange("a0", facts(None), "f0", whole=False), Exchange("a1", facts(2.0), "", whole=True))
    trajectories = [told(2.0), told(2.0), told(2.0, held_out=True), told(None, 2.0, exchanges=cut)]
    kept = choose(trajectories, Choice())
    assert texts(kept) == [["write p", "a0"]]
    assert kept.causes == {"kept already": 1, "a validation problem": 1, "an answer is cut off": 1}


def test_the_fastest_of_each_problem() -> None:
    trajectories = [told(float(k), name=f"{k}", problem=problem) for problem in "pq" for k in (1, 3, 2)]
    kept = choose(trajectories, Choice(most=2))
    assert [found[-1] for found in texts(kept)] == ["3a0", "2a0"] * 2
    assert kept.causes == {"slower than others of its problem": 2}


def benchmark(directory: Path) -> Path:
    """A benchmark of three trajectories at one problem: one is good in its second turn, one bad, one cut off by its limit."""
    ledger = Ledger(directory)
    turns_of = [((None, "stop"), (1.5, "stop")), ((None, "stop"),), ((None, "length"), (3.0, "stop"))]
    for sample, turns in enumerate(turns_of):
        for turn, (speedup, stop) in enumerate(turns):
            answer, found = Answer(f"answer {sample}.{turn}", stop), facts(speedup)  # type: ignore[arg-type]
            ledger.append(TurnRow("t/p", sample, turn, tuple(range(turn)), answer, "x", found, 0.0, f"feedback {turn}", 1.0))
        ledger.append(TurnRow("t/p", sample, len(turns), (), None, None, None, 0.0, "", 0.0))  # no room for another answer
    (directory / "prompts.json").write_text(json.dumps({"t/p": "Write p."}))
    return directory


def run_of(directory: Path) -> Path:
    """A run with a good training trajectory, a good one of validation, and one whose answer is longer than what is kept."""
    directory.mkdir(parents=True)

    def row(split: str, text: str) -> str:
        turn = {
            "completion": text,
            "stop": "stop",
            "code": "x",
            "evaluation": facts(1.3).to_json(),
            "reward": 1.0,
            "feedback": "",
        }
        return json.dumps({"split": split, "step": 1, "problem": "r/p", "prompt": "Write r.", "turns": [turn]}) + "\n"

    rows = [row("train", "ours"), row("validation", "held out"), row("train", "x" * TEXT_LIMIT)]
    (directory / "transcripts.jsonl").write_text("".join(rows))
    return directory


def test_the_command_joins_a_benchmark_and_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "data" / "kept.parquet"
    sources = [str(benchmark(tmp_path / "b")), str(run_of(tmp_path / "r"))]
    assert (
        prepare_conversations.main([*sources, "--out", str(out), "--keep", "correct", "--speedup", "1.2", "--turns", "1..2"]) == 0
    )
    printed = capsys.readouterr().out
    assert f"{out}: 2 of 6 trajectories, of 2 problems; " in printed
    assert (
        "an answer is cut off: 2" in printed and "no turn is good enough: 1" in printed and "a validation problem: 1" in printed
    )
    assert [row["source"] for row in pq.read_table(out).to_pylist()] == ["b", "r"]
    found = read_conversations(str(out)).found
    assert [conversation.exchanges for conversation in found] == [
        (("Write p.", "answer 0.0"), ("feedback 0", "answer 0.1")),
        (("Write r.", "ours"),),
    ]


@pytest.mark.parametrize(("split", "cause"), [("validation", "a validation problem: 3"), ("train", "an answer is cut off: 1")])
@pytest.mark.parametrize("problems", [load_suite, world_problems])
def test_validation_problems_are_left_out_under_any_name(
    tmp_path: Path, split: str, cause: str, problems: Callable[[], tuple[Problem, ...]]
) -> None:
    shown = next(problem for problem in problems() if problem.split == split)
    directory = benchmark(tmp_path / "b")
    (directory / "prompts.json").write_text(json.dumps({"t/p": KernelEnvironment("full").prompt(shown)}))
    causes = choose(trajectories_of(directory), Choice()).causes
    assert cause in [f"{known}: {count}" for known, count in causes.items()]


def test_modelled_and_measured_times_are_not_mixed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sources = [benchmark(tmp_path / "b"), run_of(tmp_path / "r")]
    kept = sources[1] / "transcripts.jsonl"
    kept.write_text(kept.read_text().replace('"modelled"', '"measured"'))
    assert prepare_conversations.main([*map(str, sources), "--out", str(tmp_path / "kept.parquet")]) == 2
    assert "the sources mix measured and modelled times" in capsys.readouterr().err
    assert not (tmp_path / "kept.parquet").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give at least one DIRECTORY and --out FILE.parquet"),
        (["{b}", "--out", "k.csv"], "give at least one DIRECTORY"),
        (["{b}", "--out", "k.parquet", "--turns", "5..3"], "--turns 5..3: write 3, 3..5 or 3.."),
        (["{b}", "--out", "k.parquet", "--keep", "any", "--speedup", "2"], "--speedup and --coverage are of correct turns"),
        (["{b}", "--out", "k.parquet", "--speedup", "9"], "no conversation is left (no turn is good enough: 3)"),
        (["{b}/..", "--out", "k.parquet"], "neither a benchmark (turns.jsonl) nor a run (transcripts.jsonl)"),
    ],
)
def test_unusable_arguments(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    directory = str(benchmark(tmp_path / "b"))
    assert prepare_conversations.main([word.replace("{b}", directory) for word in arguments]) == 2
    assert message in capsys.readouterr().err
