"""Score any model, endpoint or directory of solutions: Fast@p, pass@k, speedup, hacking and lazy rates, with intervals.

    python -m experiments.benchmark --model small
    python -m experiments.benchmark --model Qwen/Qwen3-8B --problems KernelBench --levels 1 2 --samples 4
    python -m experiments.benchmark --url http://localhost:8000/v1 --model NAME --turns 10 --context top:4
    python -m experiments.benchmark --solutions DIR --problems KernelBench     DIR/<problem>.py or DIR/<problem>/<sample>.py

Everything is kept in <out>/benchmark/<name>-<fingerprint>/: manifest.json, prompts.json, turns.jsonl (one row per finished turn),
results.json, turns.parquet, and report.html, where every turn can be read. The same command goes on where it was stopped; with
more --samples or --turns, it adds what is missing. Exit status 75 says that some answers did not come, and that the same command
goes on.

A suite is ours, or a directory in KernelBench's layout; `rlkernel.evaluator.judging.sizes.fitting` says at which
sizes its problems are judged.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import anyio
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from experiments.benchmark.flags import Flags
from experiments.benchmark.plan import Plan, manifest_of, plan
from experiments.benchmark.work import work
from rlkernel.benchmark import page as benchmark_page
from rlkernel.benchmark import results as benchmark_results
from rlkernel.benchmark import tables as benchmark_tables
from rlkernel.benchmark.trajectories import Ledger, Missing, TurnRow
from rlkernel.commands.flags import parse_flags
from rlkernel.errors import GOES_ON, exit_status
from rlkernel.evaluator.judging.sizes.fitting import Unfit
from rlkernel.runs import directory as rundir
from rlkernel.runs.durable import replace_text
from rlkernel.training.interruption import interruptible

__all__ = ["Flags", "main", "run"]


def execute(plan: Plan, console: Console, errors: Console) -> int:
    """Do what is missing, write the results and show them. Returns the exit status."""
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
                results = benchmark_results.write(plan.directory, manifest, plan.everything, plan.samples, plan.turns, ledger)
                prompts = {problem.name: plan.environment.prompt(problem) for problem in plan.everything}
                replace_text(plan.directory / benchmark_results.PROMPTS, json.dumps(prompts) + "\n")
                page = benchmark_page.write(plan.directory, plan.label, results, ledger, plan.samples, plan.turns, prompts)
    benchmark_tables.show(plan.label, results, console, everything=plan.flags.long)
    console.print(f"report: {page}", markup=False, highlight=False, soft_wrap=True)
    if interrupted:
        raise KeyboardInterrupt("the same command goes on")
    if missing.count:
        errors.print(
            f"{missing.count} trajectories got no answer, the first: {missing.reason}: the same command goes on",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
        return GOES_ON
    return 0


@contextmanager
def _progress(plan: Plan, ledger: Ledger, console: Console) -> Iterator[Callable[[TurnRow], None]]:
    """Show a progress bar of turns. Yields the function to call with every finished row."""
    wanted = plan.samples
    total = sum(wanted[problem.name] for problem in plan.problems) * plan.turns
    done = sum(row.sample < wanted.get(row.problem, 0) and row.turn < plan.turns for row in ledger.rows)
    correct, cost = 0, ledger.cost
    columns = (TextColumn("turns"), BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.fields[note]}"), console=console) as bar:
        task = bar.add_task("", total=total, completed=done, note="")

        def on_row(row: TurnRow) -> None:
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
    """The command. Exit status: 0, 2 for unusable arguments (one line), 75 when answers are missing, 130 when interrupted."""
    return exit_status(partial(_main, list(argv)))


def _main(argv: list[str]) -> int:
    return run(parse_flags(Flags(), argv, "python -m experiments.benchmark"))


def run(flags: Flags) -> int:
    """Do what is missing, and report. Raises UsageError."""
    chosen = plan(flags)
    console = Console(width=benchmark_tables.WIDTH)
    if flags.list:
        show_problems(chosen, console)
        return 0
    return execute(chosen, console, Console(stderr=True))
