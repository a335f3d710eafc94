"""Trajectories kept turn by turn, with a scripted writer and evaluator: order, resumption, failures of each side."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio
import pytest

from algorithms.contexts import FullHistory, TopTurns
from rlkernel.benchmark.trajectories import (
    PROBE,
    TURNS,
    UNSCORED,
    Ledger,
    Missing,
    Task,
    TurnRow,
    evaluate_codes,
    make_trajectories,
)
from rlkernel.environment.speed_reward import SpeedReward
from rlkernel.errors import BrokenReference, EvaluatorFailed, UsageError, usage_error
from rlkernel.policy.writer import Answer, Exchange, NoAnswer
from rlkernel.types import Evaluation, Problem, Status

PROBLEMS = [Problem(f"level1/{name}", 1, "validation", "") for name in "ab"]
SPEEDUPS = {"1": 1.0, "2": 3.0, "3": None, "4": 2.0}


class Text:
    """Environment: prompts are names, code is the answer."""

    def prompt(self, problem: Problem) -> str:
        return problem.name

    def extract(self, completion: str) -> str | None:
        return completion or None

    def feedback(self, evaluation: Evaluation) -> str:
        return f"told {evaluation.detail}"


@dataclass
class Judge:
    """The last character of the code decides; problems in `broken` and `fatal` cannot be judged."""

    broken: frozenset[str] = frozenset()
    fatal: frozenset[str] = frozenset()
    asked: list[tuple[str, str | None]] = field(default_factory=list)

    async def evaluate(self, problem: Problem, code: str | None) -> Evaluation:
        await anyio.lowlevel.checkpoint()
        self.asked.append((problem.name, code))
        if problem.name in self.broken:
            raise BrokenReference(f"{problem.name}: no Model")
        if code == PROBE:
            return Evaluation(Status.INVALID, "")
        if problem.name in self.fatal:
            raise EvaluatorFailed("the process that runs the reference died")
        if code is None:
            return Evaluation(Status.NO_CODE, "nothing")
        speedup = SPEEDUPS[code[-1]]
        return Evaluation(Status.CORRECT if speedup else Status.INCORRECT, code, speedup=speedup, timing="modelled")


@dataclass
class Pen:
    """Writes `<problem> <turn>`, from the number of what it is shown unless `numbers` are given; remembers what it was shown."""

    fails: dict[str, int] = field(default_factory=dict)
    """Prompt -> how often it gives no answer first."""
    room: int = 100
    shown: dict[tuple[str, int], list[list[str]]] = field(default_factory=dict)
    calls: int = 0

    async def write(self, prompt: str, shown: Sequence[Exchange], seed: int) -> Answer | None:
        await anyio.lowlevel.checkpoint()
        self.calls += 1
        if self.fails.get(prompt, 0):
            self.fails[prompt] -= 1
            raise NoAnswer("HTTP 500")
        if len(shown) >= self.room:
            return None
        number = 1 + max((int(exchange.answer.text[-1]) for exchange in shown), default=0)
        self.shown.setdefault((prompt, number), []).append([f"{e.answer.text}: {e.feedback}" for e in shown])
        return Answer(f"{prompt} {seed} {number}", "stop", (), 10, 5, 0.25, 1)


def run(
    directory: Path, pen: Pen, judge: Judge | None = None, turns: int = 4, samples: int = 2, context: object = None, seed: int = 0
) -> tuple[Ledger, Missing]:
    ledger = Ledger(directory)
    chosen = context or FullHistory()
    task = Task(pen, judge or Judge(), Text(), SpeedReward(), chosen, turns, seed)  # type: ignore[arg-type]
    return ledger, anyio.run(make_trajectories, PROBLEMS, samples, task, ledger)


def rows(ledger: Ledger) -> list[TurnRow]:
    """Sorted, without the clock's part."""
    found = [replace(row, seconds=0.0) for row in ledger.rows]
    return sorted(found, key=lambda row: (row.problem, row.sample, row.turn))


def test_every_trajectory_is_made_and_each_turn_sees_what_became_of_those_before(tmp_path: Path) -> None:
    pen = Pen()
    ledger, missing = run(tmp_path, pen)
    assert missing.count == 0 and len(rows(ledger)) == 2 * 2 * 4
    first, second, third, fourth = ledger.trajectory("level1/a", 1)
    assert third.evaluation is not None and third.evaluation.status is Status.INCORRECT
    assert first.reward < second.reward > third.reward < fourth.reward
    assert first.answer is not None and second.answer is not None and second.shown == (0,)
    assert [f"{first.answer.text}: told {first.code}"] in pen.shown["level1/a", 2]
    assert fourth.shown == (0, 1, 2)
    assert ledger.cost == 16 * 0.25
    tried = ledger.tried({"level1/a": 2, "level1/b": 1}, 2)
    assert [len(samples) for samples in tried.values()] == [2, 1]
    assert [turn.speedup for turn in tried["level1/a"][0]] == [1.0, 3.0]


def test_seeds_differ_by_problem_sample_and_turn_and_by_nothing_else(tmp_path: Path) -> None:
    texts = {row.answer.text.rsplit(" ", 1)[0] for row in rows(run(tmp_path / "1", Pen())[0]) if row.answer}
    assert len(texts) == 16
    again = {row.answer.text.rsplit(" ", 1)[0] for row in rows(run(tmp_path / "2", Pen())[0]) if row.answer}
    other = {row.answer.text.rsplit(" ", 1)[0] for row in rows(run(tmp_path / "3", Pen(), seed=1)[0]) if row.answer}
    assert again == texts and not other & texts


def test_the_context_chooses_what_is_shown(tmp_path: Path) -> None:
    ledger, _ = run(tmp_path, Pen(), context=TopTurns(1), turns=3, samples=1)
    assert [row.shown for row in ledger.trajectory("level1/a", 0)] == [(), (0,), (1,)]


def test_killed_anywhere_and_taken_up_again_the_rows_are_the_same(tmp_path: Path) -> None:
    wanted = rows(run(tmp_path / "whole", Pen())[0])
    (tmp_path / "killed").mkdir()
    text = (tmp_path / "whole" / TURNS).read_bytes()
    ends = [i + 1 for i, byte in enumerate(text) if byte == 10]
    for cut in [0, 5, *(end + offset for end in ends[::3] for offset in (0, 40)), len(text) - 1]:
        (tmp_path / "killed" / TURNS).write_bytes(text[:cut])
        pen = Pen()
        ledger, _ = run(tmp_path / "killed", pen)
        assert rows(ledger) == wanted
        assert rows(Ledger(tmp_path / "killed")) == wanted  # on the disk, too
        assert pen.calls == 16 - text[:cut].count(b"\n")


def test_more_turns_and_samples_add_to_what_is_there(tmp_path: Path) -> None:
    run(tmp_path, Pen(), turns=2, samples=1)
    pen = Pen()
    ledger, _ = run(tmp_path, pen, turns=4, samples=2)
    assert pen.calls == 16 - 4
    assert rows(ledger) == rows(run(tmp_path / "whole", Pen())[0])


def test_no_answer_leaves_the_trajectory_for_the_next_start(tmp_path: Path) -> None:
    pen = Pen(fails={"level1/a": 1})
    ledger, missing = run(tmp_path, pen, samples=1)
    assert (missing.count, missing.reason) == (1, "level1/a, turn 1: HTTP 500")
    assert [row.problem for row in rows(ledger)] == ["level1/b"] * 4
    ledger, missing = run(tmp_path, pen, samples=1)
    assert missing.count == 0 and len(rows(ledger)) == 8


def test_a_trajectory_without_room_is_over_and_stays_so(tmp_path: Path) -> None:
    ledger, missing = run(tmp_path, Pen(room=2), samples=1)
    assert missing.count == 0
    assert [row.answer is None for row in ledger.trajectory("level1/a", 0)] == [False, False, True]
    assert [len(trajectory) for trajectory in ledger.tried({"level1/a": 1}, 4)["level1/a"]] == [2]
    pen = Pen()
    run(tmp_path, pen, samples=1)
    assert pen.calls == 0


def test_a_prompt_without_room_is_the_users_to_mend(tmp_path: Path) -> None:
    with pytest.raises(BaseExceptionGroup) as error:
        run(tmp_path, Pen(room=0))
    found = usage_error(error.value)
    assert isinstance(found, UsageError) and "lower --max-new-tokens" in str(found)


def test_a_problem_that_cannot_be_judged_costs_nothing_and_is_named(tmp_path: Path) -> None:
    pen = Pen()
    ledger, missing = run(tmp_path, pen, Judge(broken=frozenset({"level1/a"})))
    assert missing.count == 0 and pen.calls == 8  # all for b
    assert ledger.unscored == {"level1/a": "level1/a: no Model"}
    assert list(ledger.tried({"level1/a": 2, "level1/b": 2}, 4)) == ["level1/b"]
    judge = Judge()
    ledger, _ = run(tmp_path, Pen(), judge)
    assert judge.asked == [] and list(ledger.unscored) == ["level1/a"]


def test_an_evaluator_that_fails_on_a_problem_says_so_and_goes_on_without_it(tmp_path: Path) -> None:
    judge = Judge(fatal=frozenset({"level1/a"}))
    with pytest.raises(BaseExceptionGroup) as error:
        run(tmp_path, Pen(), judge)
    assert error.value.subgroup(EvaluatorFailed) is not None and error.value.split(EvaluatorFailed)[1] is None
    ledger, _ = run(tmp_path, Pen(), judge)
    assert ledger.unscored == {"level1/a": "the process that runs the reference died"}
    assert len(ledger.trajectory("level1/b", 0)) == 4


def test_damage_in_the_middle_is_not_passed_over(tmp_path: Path) -> None:
    run(tmp_path, Pen())
    lines = (tmp_path / TURNS).read_text().splitlines()
    (tmp_path / TURNS).write_text("\n".join([lines[0], "{torn", *lines[1:]]) + "\n")
    with pytest.raises(UsageError, match=r"turns.jsonl, line 2: not JSON"):
        Ledger(tmp_path)


def test_finished_candidates_are_trajectories_of_one_turn(tmp_path: Path) -> None:
    codes = {"level1/a": ["x 1", "x 2"], "level1/b": [None]}
    judge = Judge()
    ledger = Ledger(tmp_path)
    anyio.run(evaluate_codes, PROBLEMS, codes, judge, ledger, SpeedReward())
    tried = ledger.tried({"level1/a": 2, "level1/b": 1}, 1)
    assert [sample[0].speedup for sample in tried["level1/a"]] == [1.0, 3.0]
    assert tried["level1/b"][0][0].status is Status.NO_CODE
    again = Judge()
    anyio.run(evaluate_codes, PROBLEMS, codes, again, Ledger(tmp_path), SpeedReward())
    assert again.asked == []


def test_a_broken_reference_is_left_out_of_finished_candidates_once(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    codes = {"level1/a": ["x 1", "x 2"], "level1/b": ["x 1"]}
    anyio.run(evaluate_codes, PROBLEMS, codes, Judge(broken=frozenset({"level1/a"})), ledger, SpeedReward())
    assert len((tmp_path / UNSCORED).read_text().splitlines()) == 1 and len(rows(ledger)) == 1


def test_rows_survive_json() -> None:
    facts = Evaluation(Status.CORRECT, "d", speedup=1.5, timing="measured")
    row = TurnRow("p", 0, 1, (0,), Answer("t", "length", (1, 2)), "c", facts, 0.5, "f", 1.0)
    assert TurnRow.from_json(json.loads(json.dumps(row.to_json()))) == row
    end = TurnRow("p", 0, 2, (), None, None, None, 0.0, "", 0.0)
    assert TurnRow.from_json(json.loads(json.dumps(end.to_json()))) == end
