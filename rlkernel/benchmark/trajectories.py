"""Makes a `Writer` try problems, and keeps its trajectories turn by turn, so that a killed benchmark goes on where it was.

turns.jsonl     one row per finished turn, appended whole; a torn last row is dropped. A row has all that the next turn needs.
unscored.jsonl  problems that the evaluator could not judge, with the reason: they are left alone from then on

A trajectory that gets no answer (`NoAnswer`) stays as it is and is taken up again by the next start: a failure of the writer's
transport is never counted as a failure of the model. A trajectory whose conversation has no room for another answer is over, and
has a row that says so.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import anyio

from rlkernel.errors import BrokenReference, EvaluatorFailed, UsageError
from rlkernel.interfaces import Environment, Evaluator, Reward
from rlkernel.policy.writer import Answer, Exchange, NoAnswer, Writer
from rlkernel.refine import Context
from rlkernel.returned import reward_of
from rlkernel.rollout import derive_seed
from rlkernel.types import Evaluation, Problem

TURNS, UNSCORED = "turns.jsonl", "unscored.jsonl"
PROBE = "ModelNew = None\n"
"""A candidate that ends before any of its code matters, but after the reference was read and traced."""


@dataclass(frozen=True, slots=True)
class TurnRow:
    """A finished turn of a trajectory, as a row of turns.jsonl. Without an answer it marks the end of a trajectory that has no
    room for another one."""

    problem: str
    sample: int
    turn: int
    """The number of the turn in its trajectory, from 0."""
    shown: tuple[int, ...]
    """The numbers of the earlier turns that the writer saw."""
    answer: Answer | None
    code: str | None
    evaluation: Evaluation | None
    reward: float
    feedback: str
    seconds: float
    """The wall-clock time of writing and evaluating."""

    def to_json(self) -> dict[str, Any]:
        """The row as JSON values."""
        evaluation = None if self.evaluation is None else self.evaluation.to_json()
        return {**asdict(self), "evaluation": evaluation}

    @staticmethod
    def from_json(data: dict[str, Any]) -> TurnRow:
        """The row that `to_json` dumped."""
        answer, evaluation = data["answer"], data["evaluation"]
        if answer is not None:
            answer = Answer(**{**answer, "token_ids": tuple(answer["token_ids"])})
        facts = None if evaluation is None else Evaluation.from_json(evaluation)
        return TurnRow(**{**data, "shown": tuple(data["shown"]), "answer": answer, "evaluation": facts})


class Ledger:
    """The rows of a benchmark's directory, in memory and on disk. One process holds it (`rlkernel.runs.directory.owned`)."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._rows: dict[tuple[str, int], dict[int, TurnRow]] = {}
        self.unscored: dict[str, str] = {}
        """The problems that cannot be judged: problem -> reason."""
        for data in _mended(directory / TURNS):
            self._add(TurnRow.from_json(data))
        for data in _mended(directory / UNSCORED):
            self.unscored[data["problem"]] = data["reason"]

    def _add(self, row: TurnRow) -> None:
        self._rows.setdefault((row.problem, row.sample), {})[row.turn] = row

    def append(self, row: TurnRow) -> None:
        """Keep a finished turn."""
        self._add(row)
        _append(self._directory / TURNS, row.to_json())

    def leave_out(self, problem: str, reason: str) -> None:
        """Leave a problem alone from now on, since it cannot be judged."""
        self.unscored[problem] = reason
        _append(self._directory / UNSCORED, {"problem": problem, "reason": reason})

    def trajectory(self, problem: str, sample: int) -> list[TurnRow]:
        """The turns of a trajectory so far, in order."""
        found = self._rows.get((problem, sample), {})
        return [found[turn] for turn in sorted(found)]

    def tried(self, samples: Mapping[str, int], turns: int) -> dict[str, list[list[Evaluation]]]:
        """The evaluations that `rlkernel.benchmark.scores` scores: of every problem, those of its trajectories that have a turn.
        Problems that cannot be judged are left out. samples: the number of trajectories at each problem; turns: the most of a
        trajectory."""
        found: dict[str, list[list[Evaluation]]] = {}
        for problem, count in samples.items():
            trajectories = [self.trajectory(problem, sample)[:turns] for sample in range(count)]
            facts = [[row.evaluation for row in rows if row.evaluation is not None] for rows in trajectories]
            if problem not in self.unscored and any(facts):
                found[problem] = [row for row in facts if row]
        return found

    @property
    def rows(self) -> Iterator[TurnRow]:
        """All turns, trajectory by trajectory."""
        return (rows[turn] for rows in self._rows.values() for turn in sorted(rows))

    @property
    def cost(self) -> float:
        """The price of all answers, in the currency of the prices."""
        return sum(row.answer.cost for row in self.rows if row.answer is not None)


def _append(path: Path, row: Mapping[str, Any]) -> None:
    """Append a row in one write of a whole line: a kill of this process leaves all of it or none."""
    with path.open("ab", buffering=0) as file:
        file.write(json.dumps(row).encode() + b"\n")


def _mended(path: Path) -> list[dict[str, Any]]:
    """Read the rows of a file, and cut a torn last row from it. Raises UsageError for any other damage."""
    if not path.exists():
        return []
    text = path.read_bytes()
    whole = text[: text.rfind(b"\n") + 1]
    if len(whole) < len(text):
        with path.open("r+b") as file:
            file.truncate(len(whole))
    rows = []
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            rows.append(json.loads(line))
        except ValueError:
            raise UsageError(f"{path}, line {number}: not JSON: delete the line to go on without it") from None
    return rows


@dataclass(frozen=True)
class Task:
    """What every trajectory of a benchmark has in common."""

    writer: Writer
    evaluator: Evaluator
    environment: Environment
    reward: Reward
    context: Context
    turns: int
    seed: int


OnRow = Callable[[TurnRow], None]
"""What is called with every turn as soon as it is kept."""


def _ignore(row: TurnRow) -> None:
    """Do nothing with a finished turn: the `on_row` of callers that need none."""


@dataclass
class Missing:
    """The number of trajectories that stopped without an answer, and the reason of the first."""

    count: int = 0
    reason: str = field(default="")

    def add(self, reason: str) -> None:
        """Count one more trajectory."""
        self.count += 1
        self.reason = self.reason or reason


async def make_trajectories(
    problems: Sequence[Problem], samples: int, task: Task, ledger: Ledger, *, on_row: OnRow = _ignore
) -> Missing:
    """Make every trajectory that the ledger does not hold yet, all of them at once. Seeds depend on problem, sample and turn
    alone.

    Raises EvaluatorFailed after the problem at fault was left out: the next call, with a new evaluator, goes on without it.
    Raises UsageError from the writer, and from an evaluator that has nowhere to evaluate: no problem is left out for either.
    """
    missing = Missing()

    async def one(problem: Problem) -> None:
        try:
            if any(unfinished(ledger.trajectory(problem.name, k), task.turns) for k in range(samples)):
                await task.evaluator.evaluate(problem, PROBE)  # before anybody is asked, and paid, for an answer
            async with anyio.create_task_group() as trajectories:
                for sample in range(samples):
                    trajectories.start_soon(_make_one, problem, sample, task, ledger, missing, on_row)
        except (BrokenReference, BaseExceptionGroup, EvaluatorFailed) as error:
            broken, failed = _first(error, BrokenReference), _first(error, EvaluatorFailed)
            if broken is None and failed is None:
                raise
            ledger.leave_out(problem.name, " ".join(str(broken or failed).split()))
            if failed is not None:
                raise EvaluatorFailed(str(failed)) from error

    async with anyio.create_task_group() as tasks:
        for problem in problems:
            if problem.name not in ledger.unscored:
                tasks.start_soon(one, problem)
    return missing


def unfinished(rows: Sequence[TurnRow], turns: int) -> bool:
    """Whether a trajectory of at most `turns` turns goes on after these."""
    return len(rows) < turns and all(row.answer is not None for row in rows)


async def _make_one(problem: Problem, sample: int, task: Task, ledger: Ledger, missing: Missing, on_row: OnRow) -> None:
    """Carry a trajectory on, from where the ledger has it to its end."""
    prompt = task.environment.prompt(problem)
    seed = derive_seed(task.seed, problem.name, sample)
    while unfinished(rows := ledger.trajectory(problem.name, sample), task.turns):
        started = time.monotonic()
        shown = task.context([row.reward for row in rows])
        exchanges = [Exchange(row.answer, row.feedback) for row in (rows[i] for i in shown) if row.answer is not None]
        try:
            answer = await task.writer.write(prompt, exchanges, derive_seed(seed, len(rows)))
        except NoAnswer as error:
            missing.add(f"{problem.name}, turn {len(rows) + 1}: {error}")
            return
        row = TurnRow(problem.name, sample, len(rows), tuple(shown), None, None, None, 0.0, "", 0.0)
        if answer is None and not rows:
            raise UsageError(f"the prompt of {problem.name} leaves no room for an answer: lower --max-new-tokens")
        if answer is not None:
            code = task.environment.extract(answer.text)
            facts = await task.evaluator.evaluate(problem, code)
            feedback, spent = task.environment.feedback(facts), time.monotonic() - started
            paid = reward_of(task.reward, facts)
            row = TurnRow(problem.name, sample, len(rows), tuple(shown), answer, code, facts, paid, feedback, spent)
        ledger.append(row)
        on_row(row)


def _first(error: BaseException, kind: type[Exception]) -> Exception | None:
    """The first error of a kind in an error or in groups of errors; None without one."""
    if isinstance(error, BaseExceptionGroup):
        return next((found for inner in error.exceptions if (found := _first(inner, kind))), None)
    return error if isinstance(error, kind) else None


async def evaluate_codes(
    problems: Sequence[Problem], codes: Mapping[str, Sequence[str | None]], evaluator: Evaluator, ledger: Ledger, reward: Reward,
    *, on_row: OnRow = _ignore,
) -> None:  # fmt: skip
    """Evaluate finished candidates as trajectories of one turn. codes: the candidates of each problem; None counts as no code.

    Raises EvaluatorFailed and UsageError as `make_trajectories` does.
    """

    async def one(problem: Problem, sample: int, code: str | None) -> None:
        started = time.monotonic()
        try:
            facts = await evaluator.evaluate(problem, code)
        except (BrokenReference, EvaluatorFailed) as error:
            if problem.name not in ledger.unscored:
                ledger.leave_out(problem.name, " ".join(str(error).split()))
            if isinstance(error, EvaluatorFailed):
                raise
            return
        paid = reward_of(reward, facts)
        row = TurnRow(problem.name, sample, 0, (), Answer("", "stop"), code, facts, paid, "", time.monotonic() - started)
        ledger.append(row)
        on_row(row)

    async with anyio.create_task_group() as tasks:
        for problem in problems:
            for sample, code in enumerate(codes[problem.name]):
                if problem.name not in ledger.unscored and not ledger.trajectory(problem.name, sample):
                    tasks.start_soon(one, problem, sample, code)
