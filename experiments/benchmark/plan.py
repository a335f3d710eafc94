"""A benchmark's plan: the problems at their sizes, who is scored, under which name it is kept."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from algorithms import REWARDS
from envs.problems import load_suite
from envs.size_store import fit_all
from experiments.benchmark.flags import Flags, check, parse_context
from rlkernel.commands.native import check_native
from rlkernel.config import to_json
from rlkernel.environment.kernel_env import KernelEnvironment
from rlkernel.errors import UsageError
from rlkernel.evaluator.cards.at_hand import runner_memory
from rlkernel.evaluator.cards.gpus import Gpu
from rlkernel.evaluator.config import PATIENT, EvaluatorConfig
from rlkernel.evaluator.devices import profile_of
from rlkernel.evaluator.judging.sizes.fitting import Fitted, Unfit, describe
from rlkernel.interfaces import Reward
from rlkernel.method_code import code_of
from rlkernel.policy.load import check_model
from rlkernel.refine import Context
from rlkernel.runs import directory as rundir
from rlkernel.sources.load import load
from rlkernel.training.placement import RAY
from rlkernel.training.placement import select as select_cards
from rlkernel.types import Evaluation, Problem, Status

if TYPE_CHECKING:
    from rlkernel.policy.endpoint import EndpointConfig

NAMED = 3
"""The number of problems without a solution that are named."""


@dataclass(frozen=True)
class Plan:
    """What a benchmark will do, checked."""

    flags: Flags
    label: str
    """The name of what is scored, in a word."""
    problems: tuple[Problem, ...]
    """The problems, without those that do not fit."""
    fitted: tuple[Fitted | Unfit, ...]
    solutions: Mapping[str, Sequence[str]] | None
    endpoint: EndpointConfig | None
    environment: KernelEnvironment
    reward: Any
    context: Context
    evaluator: EvaluatorConfig
    max_new_tokens: int
    directory: Path
    identity: Mapping[str, Any]
    """Everything that decides the outcome, apart from samples and turns. It names the directory."""

    @property
    def everything(self) -> list[Problem]:
        return [f.problem for f in self.fitted]

    @property
    def samples(self) -> dict[str, int]:
        """How many samples of each problem are wanted."""
        if self.solutions is None:
            return {problem.name: self.flags.samples for problem in self.everything}
        return {problem.name: max(1, len(self.solutions[problem.name])) for problem in self.everything}

    @property
    def turns(self) -> int:
        return self.flags.turns if self.solutions is None else 1


def plan(flags: Flags) -> Plan:
    """Make the plan. Raises UsageError for anything in the flags that cannot work."""
    check(flags)
    context = parse_context(flags.context)
    cards, evaluator = _evaluator(flags)
    small = flags.model == "small" and not flags.url
    max_new_tokens = flags.max_new_tokens or (256 if small else 4096)
    endpoint = _endpoint(flags, max_new_tokens) if flags.url else None
    wanted = select(flags)
    solutions = None
    if flags.solutions is not None:
        solutions = read_solutions(flags.solutions, wanted)
        wanted = [problem for problem in wanted if solutions[problem.name] or flags.missing == "fail"]
    if flags.model and not (small or flags.url or flags.list):
        check_model(flags.model)  # before problems are fitted, which takes longer
    fitted = tuple(_fit(wanted, flags, cards, evaluator))
    scored = [f.problem.name for f in fitted if isinstance(f, Fitted)]
    if solutions is not None and (unsolved := [name for name in scored if not solutions[name]]):
        print(unsolved_line(unsolved), file=sys.stderr)
    style = flags.style if flags.style != "auto" else ("short" if small else "full")
    environment, reward = KernelEnvironment(style, flags.answers), REWARDS[flags.reward]()
    environment.check(wanted)
    if flags.untraceable == "native":
        _check_reward(flags.reward, reward)
    identity = {
        "model": flags.model,
        "url": flags.url,
        "solutions": None if solutions is None else _digest(solutions),
        "problems": to_json([f.problem for f in fitted]),
        "environment": to_json(environment),
        "context": to_json(context),
        "reward": to_json(reward),
        "code": code_of([environment, context, reward]),
        "seed": flags.seed,
        "max_new_tokens": max_new_tokens,
        "temperature": flags.temperature,
        "evaluator": to_json(evaluator),
        "device": sorted({card.name for card in cards}) or (RAY if flags.device == RAY else "cpu"),
    }
    label = flags.model or (flags.solutions.resolve().name if flags.solutions else "")
    label = re.sub(r"[^\w.-]+", "-", label.rstrip("/").rsplit("/", 1)[-1])[:40] or "benchmark"
    return Plan(
        flags,
        label,
        tuple(f.problem for f in fitted if isinstance(f, Fitted)),
        fitted,
        solutions,
        endpoint,
        environment,
        reward,
        context,
        evaluator,
        max_new_tokens,
        flags.out / "benchmark" / f"{label}-{_digest(identity)[:8]}",
        identity,
    )


def _check_reward(name: str, reward: Reward) -> None:
    """Whether a reward can be had of a native verdict, which knows no coverage. Raises UsageError."""
    verdict = Evaluation(
        Status.CORRECT, "", True, 1.0, 1.0, 1.0, 1.0, 1.0, "measured", max_error=0.0, trust="native"
    )  # fmt: skip
    try:
        reward(verdict)
    except ValueError as error:
        raise UsageError(f"--reward {name} with --untraceable native: {error}") from error


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def select(flags: Flags) -> list[Problem]:
    """The problems that the flags name. Raises UsageError."""
    found = list(_sourced(flags) if flags.problems else load_suite())
    split = flags.split if flags.split != "auto" else ("all" if flags.problems else "validation")
    if unknown := sorted(set(flags.only) - {problem.name for problem in found}):
        raise UsageError(f"--only {unknown[0]}: no such problem; names look like {found[0].name}")
    kept: list[Problem] = []
    counts: dict[int, int] = {}
    for problem in found:
        level = problem.level in (0, *flags.levels)
        wanted = problem.name in flags.only if flags.only else split in ("all", problem.split) and level
        if wanted and (flags.first is None or counts.get(problem.level, 0) < flags.first):
            kept.append(problem)
            counts[problem.level] = counts.get(problem.level, 0) + 1
    if not kept:
        raise UsageError("no problem is left: look at --levels, --split, --only and --first")
    return kept


def _sourced(flags: Flags) -> tuple[Problem, ...]:
    """The problems of `--problems`, after a line on standard error about what was found where rows were left out."""
    loaded = load(flags.problems, flags.column, flag="--problems")
    if loaded.left_out:
        print("\n".join(loaded.lines()), file=sys.stderr)
    return loaded.problems


def read_solutions(directory: Path, problems: Sequence[Problem]) -> dict[str, list[str]]:
    """The candidates of each problem, in the order of their files' names. Raises UsageError where there are none."""
    if not directory.is_dir():
        raise UsageError(f"--solutions {directory}: no such directory")
    found: dict[str, list[str]] = {}
    used: set[Path] = set()
    for problem in problems:
        single, several = directory / f"{problem.name}.py", directory / problem.name
        files = [single] if single.is_file() else sorted(several.glob("*.py"), key=lambda path: _natural(path.stem))
        used |= set(files)
        try:
            found[problem.name] = [file.read_text(encoding="utf-8-sig") for file in files]
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"--solutions: a file of {problem.name} cannot be read: {error}") from None
    if not used:
        raise UsageError(f"--solutions {directory}: no solution of any of the problems{_example(directory, problems)}")
    return found


def _example(directory: Path, problems: Sequence[Problem]) -> str:
    """What a file of solutions must be called: for one that only lacks the level of its problem, which is part of the name,
    otherwise for the first problem."""
    for problem in problems:
        short = problem.name.rpartition("/")[2]
        for found, wanted in ((f"{short}.py", f"{problem.name}.py"), (f"{short}/", f"{problem.name}/")):
            if short != problem.name and (directory / found).exists():
                return f": {found} is there without its level, move it to {wanted}"
    return f", such as {problems[0].name}.py"


def unsolved_line(names: Sequence[str]) -> str:
    """What is said of problems that have no solution and are scored all the same.

    >>> unsolved_line(["level2/3_matmul"])
    '1 problem has no solution: level2/3_matmul (counted as a failure; --missing skip leaves it out)'
    >>> unsolved_line(list("abcdef"))
    '6 problems have no solution: a, b, c, and 3 more (counted as failures; --missing skip leaves them out)'
    """
    shown = ", ".join([*names[:NAMED], *([f"and {len(names) - NAMED} more"] if len(names) > NAMED else [])])
    if len(names) == 1:
        return f"1 problem has no solution: {shown} (counted as a failure; --missing skip leaves it out)"
    return f"{len(names)} problems have no solution: {shown} (counted as failures; --missing skip leaves them out)"


def _natural(stem: str) -> tuple[int, str]:
    digits = re.search(r"\d+", stem)
    return (int(digits[0]) if digits else -1, stem)


def _evaluator(flags: Flags) -> tuple[Sequence[Gpu], EvaluatorConfig]:
    try:
        cards = select_cards(flags.device)
    except ValueError as error:
        raise UsageError(f"--device: {error}") from error
    check_native(flags.device, bool(cards), native=flags.audit > 0, untraceable=flags.untraceable, flag="--audit")
    try:
        compiled = flags.compiled and (bool(cards) or flags.device == RAY)
        return cards, EvaluatorConfig(
            profile=flags.profile, precision=flags.precision, compiled=compiled, limits=PATIENT, untraceable=flags.untraceable
        )
    except ValueError as error:
        raise UsageError(f"--profile: {error}") from error


def _endpoint(flags: Flags, max_new_tokens: int) -> EndpointConfig:
    from rlkernel.policy.endpoint import EndpointConfig

    same = ("token_field", "send_seed", "timeout", "attempts", "in_flight", "per_minute", "price_in", "price_out", "max_cost")
    chosen = {name: getattr(flags, name) for name in same}
    temperature = None if flags.temperature < 0 else flags.temperature
    return EndpointConfig(flags.url, flags.model, max_new_tokens, temperature, **chosen)


def _fit(problems: Sequence[Problem], flags: Flags, cards: Sequence[Gpu], config: EvaluatorConfig) -> list[Fitted | Unfit]:
    if flags.sizes == "full":
        return [Fitted(problem, {}, {}) for problem in problems]
    memory, profile = None, profile_of(config.profile)
    if cards:
        shared = bool(flags.model) and not flags.url
        memory = min(runner_memory(card, config, shared=shared) for card in cards)
    columns = (TextColumn("choosing sizes"), BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=len(problems))
        store = flags.out / "benchmark" / "sizes.jsonl"
        return fit_all(problems, profile, memory, store, lambda: bar.advance(task))


def manifest_of(plan: Plan) -> dict[str, Any]:
    """The benchmark's manifest, without secrets: of the key, only the name of its variable is known here."""
    return {
        "benchmark": dict(plan.identity),
        "fingerprint": _digest(plan.identity),
        "run": {},
        "flags": to_json(plan.flags),
        "endpoint": None if plan.endpoint is None else to_json(plan.endpoint),
        "samples": plan.flags.samples,
        "turns": plan.turns,
        "sizes": describe(plan.fitted),
        **rundir.provenance(),
    }
