"""Run, resume and report an experiment: `python -m experiments.<name> [arm ...] [flags]`.

Every arm and seed has its own directory, named after the arm, the seed and the run's fingerprint: the same command goes on where
it stopped, a command with other flags starts beside it, and an arm that several experiments have is trained once for all.

    <out>/<name>/report.html, figure.png        of the last command's runs, and of those that it had with other arms or seeds
    <out>/arms/<arm>-seed<seed>-<fingerprint>/  see `rlkernel.runs.directory`
    <out>/evaluations/                          cache of verdicts, shared by the runs
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from rlkernel.commands.asked import Flags, Preset, config_file, parse
from rlkernel.commands.listing import Tables, list_arms, list_methods
from rlkernel.commands.plan import Jobs, check_arms, check_device, check_policy, choose_preset, finished_beside, plan, together_of
from rlkernel.commands.run_file import RunFile, read
from rlkernel.config import Run, fingerprint
from rlkernel.errors import GOES_ON, UsageError, exit_status
from rlkernel.report.claims import decide_claims
from rlkernel.report.report import Story, write_report
from rlkernel.report.summary import by_arm, common_timing, read_run, summarise
from rlkernel.report.terminal import print_claims, print_finding, print_table
from rlkernel.report.wandb_report import log_report
from rlkernel.runs import directory as rundir
from rlkernel.runs.code import changed, warning
from rlkernel.starting import loading
from rlkernel.training import ranks

Train = Callable[..., int]
"""`rlkernel.training.command.main` or its like, which raises KeyboardInterrupt when it is interrupted."""


@dataclass(frozen=True)
class Experiment:
    """One ablation: a file of `experiments/`."""

    name: str
    """The name of the experiment's module."""
    arms: Mapping[str, Run]
    """Runs by name; the first is the baseline of the comparison."""
    presets: Mapping[str, Preset]
    """Scales by name; `cpu` and `h200` are the defaults without and with a GPU."""
    story: Story
    """The words and claims of the report; the module's docstring opens it."""
    tables: Tables = field(default_factory=dict)
    """The registered methods, for `--methods`."""
    sharing: Callable[[Mapping[str, Run]], Mapping[str, Sequence[str]]] = lambda arms: {}
    """Arms -> the other experiments that have each of them, for `--list`."""


def main(experiment: Experiment, argv: Sequence[str], *, train: Train | None = None) -> int:
    """Exit status: 0 when all runs are finished and reported, 75 when the limit was reached and the same command goes on, 2 after
    one line about what is unusable, 130 when interrupted.
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
        if status in (0, GOES_ON):  # otherwise this process's end is theirs
            ranks.send(None)
            ranks.leave()
        return status

    return exit_status(lead)


def with_file(experiment: Experiment, argv: Sequence[str]) -> tuple[Experiment, tuple[str, ...], Flags]:
    """The experiment with the arms of `--config`, the arms that are asked for, and the flags. Raises UsageError."""
    path = config_file(argv)
    file = RunFile() if path is None else read(path, Flags, experiment.arms, experiment.tables)
    arms = {**experiment.arms, **file.arms}
    presets = {name: replace(preset, adapt=file.after(preset.adapt)) for name, preset in experiment.presets.items()}
    chosen, flags = parse(experiment.name, arms, argv, Flags(**file.flags), presets)
    named = bool(argv) and not argv[0].startswith("-")
    chosen = chosen if named else file.named or chosen
    story = experiment.story
    if path is not None and file.arms.keys() & set(chosen):
        # The experiment's own words are about its own arms.
        story = replace(story, title=f"Runs of {path.name}, with the arms of {experiment.name}", docstring="")
    return replace(experiment, arms=arms, presets=presets, story=story), chosen, flags


def _main(experiment: Experiment, argv: list[str], train: Train | None) -> int:
    check_arms(experiment.arms)
    check_claims(experiment.story, experiment.arms)
    experiment, chosen, flags = with_file(experiment, argv)
    if flags.methods:
        list_methods(experiment.tables)
        return 0
    preset = choose_preset(experiment.presets, flags)
    jobs = plan({arm: experiment.arms[arm] for arm in chosen}, flags, preset)
    if flags.list:
        # One arm alone is compared with the experiment's first, several with the first of them.
        first = chosen[0] if len(chosen) > 1 else next(iter(experiment.arms))
        known = plan({arm: experiment.arms[arm] for arm in dict.fromkeys((first, *chosen))}, flags, preset)
        list_arms({run.name: run for run, _ in known}, experiment.sharing(experiment.arms), preset, chosen)
        return 0
    check_device(jobs, preset, flags)
    check_policy(jobs, preset, flags)
    if flags.dry_run:
        return rehearse(jobs, preset, flags, train)
    count = "1 run" if len(jobs) == 1 else f"{len(jobs)} runs"
    seeds = ", ".join(map(str, dict.fromkeys(run.seed for run, _ in jobs)))
    print(f"{count} in {flags.out / 'arms'}: {', '.join(chosen)}; seeds {seeds}", file=sys.stderr)
    status = train_within(jobs, flags, train, labels_of(experiment, preset), together_of(flags, preset))
    if status == 0:
        report(experiment, directories_of(experiment, jobs, flags, preset), flags.out)
    return status


def directories_of(experiment: Experiment, jobs: Jobs, flags: Flags, preset: Preset) -> list[Path]:
    """The runs of an experiment's report: those of the command, and the finished ones beside them (`finished_beside`), which one
    line names. The first is of the arm that was named first, or of the experiment's first arm if one alone was named."""
    beside = finished_beside(jobs, experiment.arms, flags, preset)
    seeds = {arm: [run.seed for run, _ in beside if run.name == arm] for arm in experiment.arms}
    words = [f"{arm} (seed {', '.join(map(str, sorted(own)))})" for arm, own in seeds.items() if own]
    if words:
        print(f"the report also has finished runs that were here: {', '.join(words)}", file=sys.stderr)
    named = list(dict.fromkeys(run.name for run, _ in jobs))
    order = list(dict.fromkeys([*(named if len(named) > 1 else ()), *experiment.arms]))
    every = sorted((*jobs, *beside), key=lambda job: (order.index(job[0].name), job[0].seed))
    return [directory for _, directory in every]


def labels_of(experiment: Experiment, preset: Preset) -> dict[str, str]:
    """What a run's manifest and Weights & Biases say of the command that trained it."""
    name = next(name for name, one in experiment.presets.items() if one is preset)
    return {"experiment": experiment.name, "preset": name}


def train_within(
    jobs: Jobs, flags: Flags, train: Train | None = None, labels: Mapping[str, str] = MappingProxyType({}), together: int = 1
) -> int:
    """Train what is not finished yet: the status of `train`, or 75 when `--limit-seconds` came first. labels, together: as
    `train` takes them."""
    until = None if flags.limit_seconds is None else time.monotonic() + flags.limit_seconds
    for run, directory in jobs:
        rundir.check_free(directory, run)
    for place in dict.fromkeys(directory.parent for _, directory in jobs):
        rundir.make(place)
    if train is None:
        loading("transformers and TRL, and starting the evaluator", "trl")
        # Imports seconds' worth of libraries, which a wrong flag need not wait for, but the limit counts.
        from rlkernel.training import command

        train = command.main
    cache_dir = flags.out / "evaluations"
    status = train(
        jobs, cache_dir=cache_dir, checkpoint_every=flags.checkpoint_every, until=until, labels=labels, together=together
    )
    if status == GOES_ON:
        print(f"stopped after {flags.limit_seconds:g} s at a checkpoint: the same command goes on", file=sys.stderr)
    return status


def report(experiment: Experiment, directories: Sequence[Path], out: Path) -> Path:
    """Write page, figure, terminal tables and the report's own Weights & Biases run, from runs that have measured something."""
    page = write_report(out / experiment.name, experiment.story, directories)
    runs = [read_run(directory) for directory in directories]
    for run in runs:
        if files := changed(run.manifest.get("training_code")):
            print(warning(files, run.directory, goes_on=False), file=sys.stderr)
    arms, decided = summarise(runs), decide_claims(experiment.story.claims, by_arm(runs))
    print_finding(decided, arms)
    print_table(arms, common_timing(runs))
    print_claims(decided, [arm.arm for arm in arms])
    log_report(page.parent, experiment.name, arms, decided, runs, page.parent / "figure.png")
    print(f"report: {page}")
    return page


def rehearse(jobs: Jobs, preset: Preset, flags: Flags, train: Train | None) -> int:
    """Take one small step of every arm, with random weights, in directories of its own; then say what the real ones would
    need."""
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


def check_claims(story: Story, arms: Mapping[str, Run]) -> None:
    """Raise UsageError for a claim about an arm that the experiment does not have, which nobody would notice before the end."""
    for claim in story.claims:
        for arm in (claim.better, claim.worse):
            if arm not in arms:
                raise UsageError(
                    f"the claim {claim.text!r} is about {arm!r}, which is no arm here: choose from {', '.join(arms)}"
                )
