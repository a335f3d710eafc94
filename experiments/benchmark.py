"""Score any model, endpoint or directory of solutions: Fast@p, pass@k, speedup, hacking and lazy rates, with intervals.

    python -m experiments.benchmark --model small
    python -m experiments.benchmark --model Qwen/Qwen3-8B --suite KernelBench --levels 1 2 --samples 4
    python -m experiments.benchmark --url http://localhost:8000/v1 --model NAME --turns 10 --context top:4
    python -m experiments.benchmark --solutions DIR --suite KernelBench     DIR/<problem>.py or DIR/<problem>/<sample>.py

Everything is kept in <out>/benchmark/<name>-<fingerprint>/: manifest.json, turns.jsonl (one row per finished turn), results.json,
attempts.parquet, and report.html, where every turn can be read. The same command goes on where it was stopped; with more
--samples or --turns, it adds what is missing. Exit status 75 says that some answers did not come, and that the same command goes
on.

A suite is ours, or a directory in KernelBench's layout; `envs.kernelbench` says at which sizes its problems are judged.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import anyio
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from algorithms import CONTEXTS, REWARDS
from envs.kernel_env import KernelEnvironment
from envs.kernelbench import Fitted, Unfit, describe
from envs.problems import SuiteError, load_directory, load_suite
from envs.size_store import fit_all
from rlkernel import benchmark_page, benchmark_report, rundir
from rlkernel.attempts import Ledger, Missing, Row, Task, attempt_all, evaluate_codes
from rlkernel.command import interruptible
from rlkernel.config import code_of, to_json
from rlkernel.deadline import GOES_ON
from rlkernel.errors import UsageError, exit_status
from rlkernel.evaluator import gpus
from rlkernel.evaluator.gpus import Gpu
from rlkernel.evaluator.pool import Pool, open_pool, runner_memory
from rlkernel.evaluator.stages import EvaluatorConfig, EvaluatorFailed, Limits
from rlkernel.placement import place
from rlkernel.policy.writer import PolicyWriter, Writer
from rlkernel.refine import Context
from rlkernel.types import Problem

if TYPE_CHECKING:
    from rlkernel.policy.endpoint import EndpointConfig


PATIENT = Limits(trace_seconds=30, run_seconds=60)
"""A benchmark's verdicts must not depend on who else uses the cores, and level 3 has networks that take seconds to trace."""
MEMORY_SHARE = 0.875
"""Of a card, for evaluations: KernelBench's largest inputs take gigabytes."""
REFERENCE_SHARE = 0.5
"""Of that, for a study of the reference; a candidate has guarded memory of its own besides."""


@dataclass(frozen=True)
class Flags:
    """Flags of the benchmark. One of --model, --url with --model, and --solutions says what is scored."""

    model: str = ""
    """`small`, a directory, or a name on the Hugging Face hub; with --url, the name that the endpoint knows."""
    url: str = ""
    """Of an OpenAI-compatible endpoint, e.g. http://localhost:8000/v1."""
    solutions: Path | None = None
    """A directory of <problem>.py or <problem>/<sample>.py."""
    missing: Literal["fail", "skip"] = "fail"
    """What a problem without a solution is: a failure, or not part of the benchmark."""

    suite: Path | None = None
    """A directory in KernelBench's layout; without it, our suite."""
    levels: tuple[int, ...] = (1, 2, 3)
    split: Literal["auto", "validation", "train", "all"] = "auto"
    """auto: validation of our suite, all of a directory."""
    only: tuple[str, ...] = ()
    """Names of problems, such as level1/19_ReLU."""
    problems: int | None = None
    """The first so many of each level."""
    sizes: Literal["fit", "full"] = "fit"
    """fit: the rule of `envs.kernelbench` for problems without SMALL; full: as the files have them."""

    samples: int = 1
    """Attempts at each problem."""
    turns: int = 1
    """Of an attempt; each but the first is told what became of the one before."""
    context: str = "full"
    """Which earlier turns are shown: full, last:N, top:N (of highest reward) or window:N."""
    reward: str = "speed"
    """What top and window go by."""
    style: Literal["auto", "short", "full"] = "auto"
    """Of the prompt; auto: short for the small model."""
    seed: int = 0
    max_new_tokens: int | None = None
    """Without it, 256 for the small model, else 4096."""
    temperature: float = 1.0
    """Below 0: not sent to an endpoint."""
    engine: str = "auto"
    """Of sampling from a Hugging Face model."""

    device: str = "auto"
    """Of the evaluator: auto, cpu (modelled time), cuda or cuda:N."""
    jobs: int = 0
    profile: str = "h200"
    tf32: bool = False
    compiled: bool = True
    """On a GPU, also compare with the reference under torch.compile."""

    key_env: str = "OPENAI_API_KEY"
    """Name of the environment variable that holds the endpoint's key; one that is not set means no key."""
    token_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    send_seed: bool = True
    timeout: float = 600.0
    """Seconds for one request."""
    attempts: int = 8
    """Requests for one answer, with growing pauses."""
    in_flight: int = 8
    per_minute: float = 0.0
    """Requests; 0: no limit."""
    price_in: float = 0.0
    """Per million tokens."""
    price_out: float = 0.0
    max_cost: float = 0.0
    """No request is begun once this much is spent; 0: no limit."""

    out: Path = Path("runs")
    list: bool = False
    """Show the problems with their sizes, and stop."""


def parse_context(text: str) -> Context:
    """`full`, `last:4`, ... Raises UsageError.

    >>> parse_context("top:2")
    TopTurns(count=2)
    """
    name, _, count = text.partition(":")
    takes = name in CONTEXTS and bool(dataclasses.fields(CONTEXTS[name]))
    if name not in CONTEXTS or (count and not (takes and count.isdecimal() and int(count) > 0)):
        raise UsageError(f"--context {text}: use full, or one of last:N, top:N and window:N with N at least 1")
    context: Context = CONTEXTS[name](int(count)) if count else CONTEXTS[name]()
    return context


def select(flags: Flags) -> list[Problem]:
    """The problems that the flags name. Raises UsageError."""
    try:
        found = list(load_suite() if flags.suite is None else load_directory(flags.suite))
    except SuiteError as error:
        raise UsageError(f"--suite: {error}") from error
    split = flags.split if flags.split != "auto" else ("validation" if flags.suite is None else "all")
    if unknown := sorted(set(flags.only) - {problem.name for problem in found}):
        raise UsageError(f"--only {unknown[0]}: no such problem; names look like {found[0].name}")
    kept: list[Problem] = []
    counts: dict[int, int] = {}
    for problem in found:
        wanted = problem.name in flags.only if flags.only else split in ("all", problem.split) and problem.level in flags.levels
        if wanted and (flags.problems is None or counts.get(problem.level, 0) < flags.problems):
            kept.append(problem)
            counts[problem.level] = counts.get(problem.level, 0) + 1
    if not kept:
        raise UsageError("no problem is left: look at --levels, --split, --only and --problems")
    return kept


def read_solutions(directory: Path, problems: Sequence[Problem]) -> dict[str, list[str]]:
    """Problem -> its candidates, in the order of their files' names. Raises UsageError."""
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
        raise UsageError(f"--solutions {directory}: no solution of any of the problems, such as {problems[0].name}.py")
    return found


def _natural(stem: str) -> tuple[int, str]:
    digits = re.search(r"\d+", stem)
    return (int(digits[0]) if digits else -1, stem)


@dataclass(frozen=True)
class Plan:
    """A benchmark, checked."""

    flags: Flags
    label: str
    """What is scored, in a word."""
    problems: tuple[Problem, ...]
    """Without those that do not fit."""
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
    """What decides the outcome, but for samples and turns: it names the directory."""

    @property
    def everything(self) -> list[Problem]:
        return [f.problem for f in self.fitted]

    @property
    def samples(self) -> dict[str, int]:
        """Wanted of each problem."""
        if self.solutions is None:
            return {problem.name: self.flags.samples for problem in self.everything}
        return {problem.name: max(1, len(self.solutions[problem.name])) for problem in self.everything}

    @property
    def turns(self) -> int:
        return self.flags.turns if self.solutions is None else 1


def plan(flags: Flags) -> Plan:
    """Raises UsageError for anything in the flags that cannot work."""
    if bool(flags.solutions) == bool(flags.model):
        raise UsageError("say what to score: --model NAME, --url URL --model NAME, or --solutions DIR")
    if flags.url and flags.solutions:
        raise UsageError("--url and --solutions exclude each other")
    for name in ("samples", "turns", "problems", "max_new_tokens"):
        value = getattr(flags, name)
        if value is not None and value < 1:
            raise UsageError(f"--{name.replace('_', '-')} {value}: at least 1")
    if flags.reward not in REWARDS:
        raise UsageError(f"--reward {flags.reward}: use one of {', '.join(REWARDS)}")
    if flags.jobs < 0:
        raise UsageError(f"--jobs {flags.jobs}: use 0 for one per core, or a positive number")
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
    fitted = tuple(_fit(wanted, flags, cards, evaluator))
    style = flags.style if flags.style != "auto" else ("short" if small else "full")
    environment, reward = KernelEnvironment(style), REWARDS[flags.reward]()
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
        "device": sorted({card.name for card in cards}) or "cpu",
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


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def _evaluator(flags: Flags) -> tuple[Sequence[Gpu], EvaluatorConfig]:
    try:
        cards = gpus.select(flags.device)
    except ValueError as error:
        raise UsageError(f"--device: {error}") from error
    limits = PATIENT
    if cards:
        memory = int(MEMORY_SHARE * min(card.memory_bytes or limits.gpu_memory_bytes for card in cards))
        limits = dataclasses.replace(limits, gpu_memory_bytes=memory)
    try:
        compiled = flags.compiled and bool(cards)
        return cards, EvaluatorConfig(profile=flags.profile, tf32=flags.tf32, compiled=compiled, limits=limits)
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
    memory = None
    if cards:
        shared = bool(flags.model) and not flags.url
        memory = int(REFERENCE_SHARE * min(runner_memory(card, config, shared=shared) for card in cards))
    columns = (TextColumn("choosing sizes"), BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=len(problems))
        return fit_all(problems, memory, flags.out / "benchmark" / "sizes.jsonl", lambda: bar.advance(task))


async def work(plan: Plan, ledger: Ledger, key: str, on_row: Callable[[Row], None]) -> Missing:
    """Everything that the ledger lacks. An evaluator that fails on a problem is replaced, and the problem left out."""
    loaded: list[Any] = []
    while True:
        failed = False
        try:
            async with _opened(plan, ledger, key, loaded) as (pool, writer):
                if writer is None:
                    assert plan.solutions is not None
                    codes: dict[str, Sequence[str | None]] = {n: found or [None] for n, found in plan.solutions.items()}
                    await evaluate_codes(plan.problems, codes, pool, ledger, plan.reward, on_row=on_row)
                    return Missing()
                task = Task(writer, pool, plan.environment, plan.reward, plan.context, plan.turns, plan.flags.seed)
                return await attempt_all(plan.problems, plan.flags.samples, task, ledger, on_row=on_row)
        except* EvaluatorFailed as group:
            failed = True
            print(f"left out: {_leaf(group)}", file=sys.stderr, flush=True)
        assert failed


def _leaf(error: BaseException) -> BaseException:
    return _leaf(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


@asynccontextmanager
async def _opened(plan: Plan, ledger: Ledger, key: str, loaded: list[Any]) -> AsyncIterator[tuple[Pool, Writer | None]]:
    """The evaluator, and who writes; nobody for solutions. loaded: the model and tokenizer, read once."""
    flags, cache = plan.flags, plan.flags.out / "evaluations"
    own = flags.model and not flags.url
    placement = place(flags.device) if own else None
    device = flags.device if placement is None else placement.device
    shared = None if placement is None else placement.shared_uuid
    async with open_pool(device=device, jobs=flags.jobs, cache_dir=cache, config=plan.evaluator, shared=shared) as pool:
        for notice in pool.notices:
            print(notice, file=sys.stderr, flush=True)
        if plan.solutions is not None:
            yield pool, None
        elif plan.endpoint is not None:
            from rlkernel.policy.endpoint import open_endpoint

            async with open_endpoint(plan.endpoint, key, spent=ledger.cost) as endpoint:
                yield pool, endpoint
        else:
            # Seconds' worth of libraries, which the others need not wait for.
            from rlkernel.policy.hf import open_policy
            from rlkernel.policy.load import load_model

            assert placement is not None
            placement.limit_memory(pool.config)
            if not loaded:
                loaded.extend(load_model(flags.model))
                if placement.card is not None:
                    loaded[0].to("cuda")
            async with open_policy(
                *loaded,
                max_new_tokens=plan.max_new_tokens,
                temperature=flags.temperature,
                engine=flags.engine,
                turn=pool.turn if pool.shares else nullcontext,
            ) as policy:
                yield pool, PolicyWriter(policy)


def manifest_of(plan: Plan) -> dict[str, Any]:
    """Without secrets: of the key, the name of its variable is known here, and nothing else."""
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


def execute(plan: Plan, console: Console, errors: Console) -> int:
    """Do what is missing, write the results, show them. Exit status."""
    key = os.environ.get(plan.flags.key_env, "") if plan.endpoint is not None else ""
    with rundir.owned(plan.directory):
        ledger = Ledger(plan.directory)
        for f in plan.fitted:
            if isinstance(f, Unfit):
                ledger.unscored[f.problem.name] = f.reason
        manifest = manifest_of(plan)
        known = rundir.read_manifest(plan.directory)
        if known is not None:
            manifest["started"] = known["started"]
        rundir.write_manifest(plan.directory, manifest)
        missing, interrupted = Missing(), False
        with _progress(plan, ledger, errors) as on_row:

            async def body() -> None:
                nonlocal missing
                missing = await work(plan, ledger, key, on_row)

            try:
                interrupted = anyio.run(interruptible, body)
            finally:
                results = benchmark_report.write(plan.directory, manifest, plan.everything, plan.samples, plan.turns, ledger)
                prompts = {problem.name: plan.environment.prompt(problem) for problem in plan.everything}
                page = benchmark_page.write(plan.directory, plan.label, results, ledger, plan.samples, plan.turns, prompts)
    benchmark_report.show(results, console)
    console.print(f"report: {page}", markup=False, highlight=False, soft_wrap=True)
    if interrupted:
        raise KeyboardInterrupt("the same command goes on")
    if missing.count:
        errors.print(
            f"{missing.count} attempts got no answer, the first: {missing.reason}: the same command goes on",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
        return GOES_ON
    return 0


@contextmanager
def _progress(plan: Plan, ledger: Ledger, console: Console) -> Iterator[Callable[[Row], None]]:
    """A bar of turns; gives what is called with every finished row."""
    wanted = plan.samples
    total = sum(wanted[problem.name] for problem in plan.problems) * plan.turns
    done = sum(row.sample < wanted.get(row.problem, 0) and row.turn < plan.turns for row in ledger.rows)
    correct, cost = 0, ledger.cost
    columns = (TextColumn("turns"), BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.fields[note]}"), console=console) as bar:
        task = bar.add_task("", total=total, completed=done, note="")

        def on_row(row: Row) -> None:
            nonlocal correct, cost
            correct += row.evaluation is not None and row.evaluation.correct
            cost += row.answer.cost if row.answer is not None else 0.0
            bar.update(task, advance=1, note=f"{correct} correct" + (f", cost {cost:.2f}" if cost else ""))

        yield on_row


def show_problems(plan: Plan, console: Console) -> None:
    for f in plan.fitted:
        if isinstance(f, Unfit):
            line = f"does not fit: {f.reason}"
        else:
            parts = [f"made smaller: {f.whole}"] if f.whole else []
            parts += [f"compared at {f.compared}"] if f.compared else []
            line = "; ".join(parts) or "as it is"
        console.print(f"{f.problem.name}  {line}", markup=False, highlight=False, soft_wrap=True)
    unfit = sum(isinstance(f, Unfit) for f in plan.fitted)
    console.print(f"{len(plan.fitted)} problems, {unfit} of them do not fit", markup=False, highlight=False)


def main(argv: Sequence[str]) -> int:
    """Exit status: 0, 2 for unusable arguments (one line), 75 when answers are missing, 130 when interrupted."""
    return exit_status(partial(_main, list(argv)))


def _main(argv: list[str]) -> int:
    from rlkernel import cli  # `run` needs no command line's libraries

    return run(cli.parse_overrides(Flags(), argv, "python -m experiments.benchmark"))


def run(flags: Flags) -> int:
    """Do what is missing, and report. Raises UsageError."""
    chosen = plan(flags)
    console = Console(width=benchmark_report.WIDTH)
    if flags.list:
        show_problems(chosen, console)
        return 0
    return execute(chosen, console, Console(stderr=True))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
