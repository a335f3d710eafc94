"""Run, resume and report an experiment: `python -m experiments.<name> [arm ...] [flags]`.

Every arm and seed has its own directory, named after the arm, the seed and the run's fingerprint: the same command goes on where
it stopped, and a command with other flags starts beside it.

    <out>/report.html, figure.png          of the runs of the last command
    <out>/<arm>-seed<seed>-<fingerprint>/  see `rlkernel.rundir`
    <out>/evaluations/                     cache of verdicts, shared by the runs
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rich.console import Console
from rich.table import Table

from rlkernel import cli
from rlkernel.config import Run, fingerprint, to_json
from rlkernel.errors import UsageError
from rlkernel.report import COLUMNS, differences, print_table, write_report
from rlkernel.summary import common_timing, read_run, summarise

Jobs = Sequence[tuple[Run, Path]]
Tables = Mapping[str, Mapping[str, type]]
"""Field of `Run` -> name -> class: the registered methods."""


@dataclass(frozen=True)
class Flags:
    """Flags of an experiment, after the names of its arms. What is not given stays as the arm has it.

    Only operational values can be changed: what an arm is about is fixed by its definition.
    """

    list: bool = False
    """Show the arms, what they cost and the registered methods, and stop."""
    out: Path = Path("runs")
    """Directory of the runs and the report."""
    seeds: tuple[int, ...] = (0, 1)
    """One run per arm and seed."""
    model: str | None = None
    """`small`, or the name or path of a Hugging Face causal LM."""
    device: str | None = None
    """Of the evaluator: auto or cpu, both modelled time so far."""
    jobs: int | None = None
    """Evaluations in flight; 0: one per core."""
    steps: int | None = None
    turns: int | None = None
    """Attempts per trajectory."""
    prompts_per_step: int | None = None
    rollouts: int | None = None
    """Trajectories per prompt and step."""
    max_new_tokens: int | None = None
    """Per turn."""
    learning_rate: float | None = None
    validation_every: int | None = None
    """Steps between measurements on the validation split."""
    validation_rollouts: int | None = None
    """Trajectories per validation problem and measurement."""


OVERRIDES = tuple(field.name for field in fields(Flags) if field.name not in ("list", "out", "seeds"))
"""The flags that are fields of `Run`."""


def main(
    name: str,
    docstring: str,
    arms: Mapping[str, Run],
    argv: Sequence[str],
    *,
    pretrained: Callable[[Run], Run],
    tables: Tables = MappingProxyType({}),
    train: Callable[..., int | None] | None = None,
) -> int:
    """Exit status: 0 when all runs are finished and reported, 2 after one line about what is unusable, 130 when interrupted.

    docstring: the experiment's; it opens the report. arms: the first is the baseline of the comparison. pretrained: what changes
    in an arm for a model other than `small`, before the other flags. tables: the registered methods, for `--list`. train:
    `rlkernel.command.main` or its like.
    """
    return cli.run(lambda: _main(name, docstring, arms, list(argv), pretrained, tables, train))


def _main(
    name: str,
    docstring: str,
    arms: Mapping[str, Run],
    argv: list[str],
    pretrained: Callable[[Run], Run],
    tables: Tables,
    train: Callable[..., int | None] | None,
) -> int:
    check_arms(arms)
    chosen, flags = parse(name, arms, argv)
    if flags.list:
        list_arms(arms)
        list_methods(tables)
        return 0
    jobs = plan({arm: arms[arm] for arm in chosen}, flags, pretrained)
    if train is None:
        # Imports seconds' worth of libraries, which a wrong flag need not wait for.
        from rlkernel import command

        train = command.main
    count = "1 run" if len(jobs) == 1 else f"{len(jobs)} runs"
    print(f"{count} in {flags.out}: {', '.join(chosen)}; seeds {', '.join(map(str, flags.seeds))}", file=sys.stderr)
    status = train(jobs, cache_dir=flags.out / "evaluations")
    if status:
        return status
    directories = [directory for _, directory in sorted(jobs, key=lambda job: chosen.index(job[0].name))]
    page = write_report(flags.out, name.replace("_", " ").capitalize(), docstring, directories)
    runs = [read_run(directory) for directory in directories]
    print_table(summarise(runs), common_timing(runs))
    print(f"report: {page}")
    return 0


def parse(name: str, arms: Mapping[str, Run], argv: Sequence[str]) -> tuple[tuple[str, ...], Flags]:
    """Arms come first, flags after them; no arm means all. Raises UsageError in one line."""
    named = next((i for i, word in enumerate(argv) if word.startswith("-")), len(argv))
    for arm in argv[:named]:
        if arm not in arms:
            raise UsageError(f"unknown arm {arm!r}: choose from {', '.join(arms)}, or none for all (--list describes them)")
    flags = cli.parse_overrides(Flags(out=Path("runs") / name), list(argv[named:]), f"python -m experiments.{name} [arm ...]")
    if not flags.seeds:
        raise UsageError("--seeds is empty: give at least one, e.g. --seeds 0 1")
    return tuple(dict.fromkeys(argv[:named])) or tuple(arms), flags


def plan(arms: Mapping[str, Run], flags: Flags, pretrained: Callable[[Run], Run]) -> Jobs:
    """The runs in the order in which they are trained: seed by seed, so that arms can be compared early.

    Raises UsageError for a value that no run can have, and for arms that the flags make equal.
    """
    given = {name: value for name in OVERRIDES if (value := getattr(flags, name)) is not None}
    jobs = []
    for seed in dict.fromkeys(flags.seeds):
        for run in arms.values():
            adapted = run if given.get("model", "small") == "small" else pretrained(run)
            try:
                adapted = replace(adapted, seed=seed, **given)
            except ValueError as error:
                raise UsageError(str(error)) from error
            jobs.append((adapted, flags.out / f"{run.name}-seed{seed}-{fingerprint(adapted)[:8]}"))
    check_arms({run.name: run for run, _ in jobs})
    return jobs


def check_arms(arms: Mapping[str, Run]) -> None:
    """Raises UsageError for two arms that differ in nothing but their names, whose difference would be noise, and for an arm
    whose run has another name."""
    seen: dict[str, str] = {}
    for name, run in arms.items():
        if run.name != name:
            raise UsageError(f"arm {name!r} holds a run named {run.name!r}: give both the same name")
        same = seen.setdefault(fingerprint(replace(run, name="", seed=0)), name)
        if same != name:
            raise UsageError(
                f"arms {same!r} and {name!r} differ in nothing: change what one is about, or the flag that levels them"
            )


def cost(run: Run) -> int:
    """Answers that one run samples and evaluates, in training and validation."""
    training = run.steps * run.prompts_per_step * run.rollouts
    problems = sum(problem.split == "validation" for problem in run.problems)
    # Before the first step, every `validation_every` steps, and after the last.
    measurements = 1 + -(-run.steps // run.validation_every)
    return run.turns * (training + measurements * problems * run.validation_rollouts)


def list_arms(arms: Mapping[str, Run]) -> None:
    """Name, what differs from the other arms, and the cost of one run."""
    table = Table(box=None, pad_edge=False)
    for header, justify in (("arm", "left"), ("differs in", "left"), ("steps", "right"), ("answers per run", "right")):
        table.add_column(header, justify=justify, overflow="fold")  # type: ignore[arg-type]
    differs = differences({arm: to_json(run) for arm, run in arms.items()})
    for arm, run in arms.items():
        what = "; ".join(f"{key} = {value}" for key, value in differs[arm].items()) or "nothing"
        table.add_row(arm, what, str(run.steps), f"{cost(run):,}")
    Console(width=COLUMNS).print(table, markup=False)


def list_methods(tables: Tables) -> None:
    """The registered methods: name, class with the values of its fields, and the first sentence of what it says of itself."""
    table = Table(box=None, pad_edge=False)
    for header in ("method", "name", "class", "formula"):
        table.add_column(header, overflow="fold")
    for kind, classes in tables.items():
        for name, cls in classes.items():
            formula = (cls.__doc__ or "").strip().split("\n\n")[0]
            table.add_row(kind, name, _brief(to_json(cls())), " ".join(formula.split()))
    if tables:
        console = Console(width=COLUMNS)
        console.print()
        console.print(table, markup=False)


def _brief(value: Any) -> str:
    """A dumped value in few words; the manifest has all of it.

    >>> _brief({"class": "PR", "inner": {"class": "SpeedReward", "cap": 3.0}, "weight": 0.5})
    'PR(inner=SpeedReward, weight=0.5)'
    >>> _brief(["mm", "bmm", "addmm", "mv"])
    '4 values'
    """
    if isinstance(value, Mapping):
        inner = {key: item["class"] if isinstance(item, Mapping) else _brief(item) for key, item in value.items()}
        return f"{inner.pop('class')}({', '.join(f'{key}={item}' for key, item in inner.items())})"
    if isinstance(value, list):
        return f"{len(value)} values"
    return str(value)
