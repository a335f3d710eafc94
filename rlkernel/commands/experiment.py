"""Run, resume and report an experiment: `python -m experiments.<name> [arm ...] [flags]`.

Every arm and seed has its own directory, named after the arm, the seed and the run's fingerprint: the same command goes on where
it stopped, a command with other flags starts beside it, and an arm that several experiments have is trained once for all.

    <out>/<name>/report.html, figure.png        of the runs of the last command
    <out>/arms/<arm>-seed<seed>-<fingerprint>/  see `rlkernel.runs.directory`
    <out>/evaluations/                          cache of verdicts, shared by the runs
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from rlkernel.commands import cli
from rlkernel.commands.deadline import GOES_ON, limited
from rlkernel.config import Run, fingerprint, to_json
from rlkernel.errors import UsageError
from rlkernel.evaluator.cards import gpus
from rlkernel.report.claims import decide_claims
from rlkernel.report.report import COLUMNS, Story, differences, print_claims, print_table, write_report
from rlkernel.report.summary import by_arm, common_timing, read_run, summarise
from rlkernel.report.wandb_report import log_report
from rlkernel.runs import directory as rundir
from rlkernel.training import ranks

Jobs = Sequence[tuple[Run, Path]]
Train = Callable[..., int | None]
Tables = Mapping[str, Mapping[str, type]]
"""Field of `Run` -> name -> class: the registered methods."""


@dataclass(frozen=True)
class Preset:
    """A scale at which the arms of every experiment run."""

    about: str
    """One line."""
    adapt: Callable[[Run], Run]
    """An arm to the arm at this scale; what it is about stays."""
    seeds: tuple[int, ...]
    gpu: bool = False
    """Needs a GPU."""
    policy: tuple[Path, str] | None = None
    """The directory of a model that a checkout does not have, and the command that makes it."""
    estimate: Callable[[Run], str] | None = None
    """What a run needs, where nobody has measured it: one line that calls itself an estimate."""
    rehearse: Callable[[Run], Run] | None = None
    """For `--dry-run`: the arm with random weights at reduced depth and size; None: not offered."""


@dataclass(frozen=True)
class Experiment:
    """One ablation: a file of `experiments/`."""

    name: str
    """Of the module."""
    arms: Mapping[str, Run]
    """The first is the baseline of the comparison."""
    presets: Mapping[str, Preset]
    """`cpu` and `h200` are the defaults without and with a GPU."""
    story: Story
    """Its docstring says claim, arms, expected outcome and cost, and opens the report."""
    tables: Tables = field(default_factory=dict)
    """The registered methods, for `--methods`."""
    sharing: Callable[[], Mapping[str, Sequence[str]]] = dict
    """Arm -> the experiments that have it, for `--list`."""


@dataclass(frozen=True)
class Flags:
    """Flags of an experiment, after the names of its arms. What is not given stays as the arm has it.

    Only operational values can be changed: what an arm is about is fixed by its definition.
    """

    list: bool = False
    """Show the arms, who shares them and what they cost, and stop."""
    methods: bool = False
    """Show the registered methods with their formulas, and stop."""
    preset: str = ""
    """cpu (modelled time, small), h200 (measured) or paper (the papers' hyperparameters). Empty: h200 where there is a GPU."""
    dry_run: bool = False
    """Check every arm, then take one step of it with random weights at reduced size; for presets that cannot run here."""
    limit_seconds: float | None = None
    """Stop at the first checkpoint after so many seconds, with exit status 75; the same command goes on."""
    checkpoint_every: int = 1
    """Steps between checkpoints: what an interruption costs at most. It does not change what is computed."""
    out: Path = Path("runs")
    """Directory of the runs and the reports."""
    seeds: tuple[int, ...] | None = None
    """One run per arm and seed; without it, the preset's."""
    model: str | None = None
    """`small`, or the name or path of a Hugging Face causal LM, e.g. a policy made by experiments.cold_start."""
    device: str | None = None
    """Of the evaluator: auto, cpu, cuda, cuda:N or ray."""
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


COMMAND = ("list", "methods", "preset", "dry_run", "limit_seconds", "checkpoint_every", "out", "seeds")
OVERRIDES = tuple(flag.name for flag in fields(Flags) if flag.name not in COMMAND)
"""The flags that are fields of `Run`."""


def main(experiment: Experiment, argv: Sequence[str], *, train: Train | None = None) -> int:
    """Exit status: 0 when all runs are finished and reported, 75 when the limit was reached and the same command goes on, 2 after
    one line about what is unusable, 130 when interrupted.

    train: `rlkernel.training.command.main` or its like, which raises KeyboardInterrupt when it is interrupted.
    """
    return lead_or_follow(lambda: _main(experiment, list(argv), train))


def lead_or_follow(work: Callable[[], int]) -> int:
    """The exit status of a command that trains. Of several processes (`rlkernel.training.ranks`) the first does `work`, the
    others what
    its training asks of them."""
    if ranks.rank():
        from rlkernel.training.follower import follow

        return follow()

    def lead() -> int:
        try:
            status = work()
        except SystemExit as stop:  # `--help` has been printed
            if stop.code:
                raise
            status = 0
        if status == 0:  # otherwise this process's end is theirs
            ranks.send(None)
            ranks.leave()
        return status

    return cli.run(lead)


def _main(experiment: Experiment, argv: list[str], train: Train | None) -> int:
    check_arms(experiment.arms)
    check_claims(experiment.story, experiment.arms)
    chosen, flags = parse(experiment.name, experiment.arms, argv)
    if flags.methods:
        list_methods(experiment.tables)
        return 0
    preset = choose_preset(experiment.presets, flags)
    arms = {arm: experiment.arms[arm] for arm in chosen}
    if flags.list:
        list_arms({arm: preset.adapt(run) for arm, run in experiment.arms.items()}, experiment.sharing(), preset)
        return 0
    jobs = plan(arms, flags, preset)
    check_device(jobs, preset, flags)
    check_policy(jobs, preset, flags)
    if flags.dry_run:
        return rehearse(jobs, preset, flags, train)
    count = "1 run" if len(jobs) == 1 else f"{len(jobs)} runs"
    seeds = ", ".join(map(str, dict.fromkeys(run.seed for run, _ in jobs)))
    print(f"{count} in {flags.out / 'arms'}: {', '.join(chosen)}; seeds {seeds}", file=sys.stderr)
    status = train_within(jobs, flags, train)
    if status == 0:
        report(experiment, [directory for _, directory in sorted(jobs, key=lambda job: chosen.index(job[0].name))], flags.out)
    return status


def train_within(jobs: Jobs, flags: Flags, train: Train | None = None) -> int:
    """Train what is not finished yet: the status of `train`, or 75 when `--limit-seconds` came first."""
    if flags.checkpoint_every < 1:
        raise UsageError(f"--checkpoint-every {flags.checkpoint_every}: at least 1")
    with limited(jobs, flags.limit_seconds) as limit:
        if train is None:
            # Imports seconds' worth of libraries, which a wrong flag need not wait for, but the limit counts.
            from rlkernel.training import command

            train = command.main
        try:
            return train(jobs, cache_dir=flags.out / "evaluations", checkpoint_every=flags.checkpoint_every) or 0
        except KeyboardInterrupt:
            if not limit.reached:
                raise
    print(f"stopped after {flags.limit_seconds:g} s at a checkpoint: the same command goes on", file=sys.stderr)
    return GOES_ON


def report(experiment: Experiment, directories: Sequence[Path], out: Path) -> Path:
    """Page, figure, terminal tables and the report's own Weights & Biases run, from runs that have measured something."""
    page = write_report(out / experiment.name, experiment.story, directories)
    runs = [read_run(directory) for directory in directories]
    arms, decided = summarise(runs), decide_claims(experiment.story.claims, by_arm(runs))
    print_table(arms, common_timing(runs))
    print_claims(decided, [arm.arm for arm in arms])
    log_report(page.parent, experiment.name, arms, decided, runs, page.parent / "figure.png")
    print(f"report: {page}")
    return page


def choose_preset(presets: Mapping[str, Preset], flags: Flags) -> Preset:
    """Raises UsageError for a preset that does not exist, or for a rehearsal of one that has none."""
    name = flags.preset or ("h200" if gpus.select("auto") and "h200" in presets else "cpu")
    if name not in presets:
        raise UsageError(f"--preset {name}: choose from {', '.join(presets)}")
    if flags.dry_run and presets[name].rehearse is None:
        offered = ", ".join(other for other, preset in presets.items() if preset.rehearse is not None)
        raise UsageError(f"--dry-run is for presets that may not fit this machine ({offered}); --preset {name} can simply be run")
    return presets[name]


def check_device(jobs: Jobs, preset: Preset, flags: Flags) -> None:
    """Raises UsageError for a preset that needs a GPU where there is none. Finished runs are reported anywhere."""
    if not preset.gpu or flags.dry_run or flags.device is not None or gpus.select("auto"):
        return
    if not all(rundir.finished(directory, run) for run, directory in jobs):
        name = next(run.name for run, directory in jobs if not rundir.finished(directory, run))
        rehearsal = ", or --dry-run" if preset.rehearse is not None else ""
        raise UsageError(f"{name} is not finished, its preset needs a GPU, and there is none: use --preset cpu{rehearsal}")


def check_policy(jobs: Jobs, preset: Preset, flags: Flags) -> None:
    """Raises UsageError where the preset's own policy was not made yet and a run needs it."""
    if preset.policy is None or flags.dry_run or preset.policy[0].is_dir():
        return
    directory, command = preset.policy
    if any(run.model == str(directory) and not rundir.finished(place, run) for run, place in jobs):
        raise UsageError(f"the preset's policy is not in {directory}: make it with `{command}`, or give --model small")


def rehearse(jobs: Jobs, preset: Preset, flags: Flags, train: Train | None) -> int:
    """One small step of every arm, with random weights, in directories of its own; then what the real ones would need."""
    assert preset.rehearse is not None
    first: dict[str, Run] = {}
    for run, _ in jobs:
        first.setdefault(run.name, run)
    small = []
    for run in first.values():
        rehearsed = preset.rehearse(run)
        small.append((rehearsed, flags.out / "rehearsals" / f"{run.name}-{fingerprint(rehearsed)[:8]}"))
    status = train_within(small, flags, train)
    if status == 0:
        for run in first.values():
            print(f"{run.name}: one step of random weights at reduced size went through")
            if preset.estimate is not None:
                print(f"  {preset.estimate(run)}")
    return status


def parse(name: str, arms: Mapping[str, Run], argv: Sequence[str]) -> tuple[tuple[str, ...], Flags]:
    """Arms come first, flags after them; no arm means all. Raises UsageError in one line."""
    named = next((i for i, word in enumerate(argv) if word.startswith("-")), len(argv))
    for arm in argv[:named]:
        if arm not in arms:
            raise UsageError(f"unknown arm {arm!r}: choose from {', '.join(arms)}, or none for all (--list describes them)")
    flags = cli.parse_overrides(Flags(), list(argv[named:]), f"python -m experiments.{name} [arm ...]")
    if flags.seeds is not None and not flags.seeds:
        raise UsageError("--seeds is empty: give at least one, e.g. --seeds 0 1")
    if flags.limit_seconds is not None and flags.limit_seconds <= 0:
        raise UsageError(f"--limit-seconds {flags.limit_seconds:g}: give a positive number of seconds")
    return tuple(dict.fromkeys(argv[:named])) or tuple(arms), flags


def plan(arms: Mapping[str, Run], flags: Flags, preset: Preset) -> Jobs:
    """The runs in the order in which they are trained: seed by seed, so that arms can be compared early.

    Raises UsageError for a value that no run can have, and for arms that the flags make equal.
    """
    given = {name: value for name in OVERRIDES if (value := getattr(flags, name)) is not None}
    jobs = []
    for seed in dict.fromkeys(flags.seeds or preset.seeds):
        for run in arms.values():
            try:
                adapted = replace(preset.adapt(run), seed=seed, **given)
            except ValueError as error:
                raise UsageError(str(error)) from error
            jobs.append((adapted, flags.out / "arms" / f"{run.name}-seed{seed}-{fingerprint(adapted)[:8]}"))
    check_arms({run.name: run for run, _ in jobs})
    return jobs


def check_arms(arms: Mapping[str, Run]) -> None:
    """Raises UsageError for no arms, for two arms that differ in nothing but their names, whose difference would be noise, and
    for an arm whose run has another name."""
    if not arms:
        raise UsageError("ARMS is empty: give the experiment at least one Run")
    seen: dict[str, str] = {}
    for name, run in arms.items():
        if run.name != name:
            raise UsageError(f"arm {name!r} holds a run named {run.name!r}: give both the same name")
        same = seen.setdefault(fingerprint(replace(run, name="", seed=0)), name)
        if same != name:
            raise UsageError(
                f"arms {same!r} and {name!r} differ in nothing: change what one is about, or the flag that levels them"
            )


def check_claims(story: Story, arms: Mapping[str, Run]) -> None:
    """Raises UsageError for a claim about an arm that the experiment does not have, which nobody would notice before the end."""
    for claim in story.claims:
        for arm in (claim.better, claim.worse):
            if arm not in arms:
                raise UsageError(
                    f"the claim {claim.text!r} is about {arm!r}, which is no arm here: choose from {', '.join(arms)}"
                )


def cost(run: Run) -> int:
    """Answers that one run samples and evaluates, in training and validation."""
    training = run.steps * run.prompts_per_step * run.rollouts
    problems = sum(problem.split == "validation" for problem in run.problems)
    # Before the first step, every `validation_every` steps, and after the last.
    measurements = 1 + -(-run.steps // run.validation_every)
    return run.turns * (training + measurements * problems * run.validation_rollouts)


def list_arms(arms: Mapping[str, Run], sharing: Mapping[str, Sequence[str]], preset: Preset) -> None:
    """Of each arm the cost of one run and which other experiments have it; below it, what differs from the first arm."""
    differs, first = differences({arm: to_json(run) for arm, run in arms.items()}), next(iter(arms))
    width = max(map(len, ("arm", *arms)))
    lines = [f"{'arm':{width}}  steps  answers per run  shared with", "    what differs from the first arm"]
    for arm, run in arms.items():
        own = {key: value for key, value in differs[arm].items() if arm == first or value != differs[first][key]}
        what = "; ".join(f"{key} = {value}" for key, value in own.items()) or "differs in nothing"
        about = f"{arm:{width}}  {run.steps:5}  {cost(run):15,}  {', '.join(sharing.get(arm, ())) or '-'}"
        lines += textwrap.wrap(about, COLUMNS, subsequent_indent=" " * (width + 26))
        lines += textwrap.wrap(what, COLUMNS, initial_indent="    ", subsequent_indent="    ")
    console = Console(width=COLUMNS)
    console.print("\n".join(lines), markup=False, highlight=False)
    if preset.estimate is not None:
        console.print()
        of: dict[str, list[str]] = {}
        for arm, run in arms.items():
            of.setdefault(preset.estimate(run), []).append(arm)
        for estimate, same in of.items():
            console.print(f"{', '.join(same)}: {estimate}", markup=False, highlight=False)


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
        Console(width=COLUMNS).print(table, markup=False)


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
