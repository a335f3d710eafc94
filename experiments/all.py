"""Train every arm of every experiment once, seed by seed, then write all reports.

    python -m experiments.all --limit-seconds 540      again and again, until it no longer exits with status 75

Arms that several experiments share are trained once, and all experiments then report from the same directories. The flags are
those of the experiments. Test-time scaling comes last, because it refines what was trained; it is left out at the papers' scale.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from algorithms import TABLES
from experiments import arms, sequential_scaling
from experiments.catalogue import NAMES, load
from rlkernel.commands import experiment, listing, plan
from rlkernel.commands.asked import Flags, Preset
from rlkernel.commands.experiment import Experiment, Train
from rlkernel.commands.plan import Jobs
from rlkernel.config import Run
from rlkernel.errors import GOES_ON, UsageError
from rlkernel.report.report import Story
from rlkernel.training import draws


def everything(experiments: Sequence[Experiment]) -> Experiment:
    """All arms as one experiment, in the order of first appearance."""
    union: dict[str, Run] = {}
    for one in experiments:
        union |= {arm: run for arm, run in one.arms.items() if arm not in union}
    return Experiment("all", union, arms.PRESETS, Story("All", __doc__ or ""), TABLES)


def main(argv: Sequence[str], experiments: Sequence[Experiment] | None = None, train: Train | None = None) -> int:
    """The command. Its exit statuses are those of one experiment."""
    return experiment.lead_or_follow(lambda: _main(list(argv), experiments, train))


def _main(argv: list[str], experiments: Sequence[Experiment] | None, train: Train | None) -> int:
    started = time.monotonic()
    own = experiments is None
    found = [load(name) for name in NAMES] if experiments is None else list(experiments)
    whole = everything(found)
    whole, chosen, flags = experiment.with_file(whole, argv)
    if flags.methods:
        listing.list_methods(whole.tables)
        return 0
    preset = plan.choose_preset(whole.presets, flags)
    jobs = plan.plan({arm: whole.arms[arm] for arm in chosen}, flags, preset)
    if len(chosen) == len(whole.arms):
        jobs = drawable(jobs)
    if flags.list:
        listing.list_arms({run.name: run for run, _ in jobs}, membership(found), preset)
        return 0
    plan.check_device(jobs, preset, flags)
    plan.check_policy(jobs, preset, flags)
    if flags.dry_run:
        return experiment.rehearse(jobs, preset, flags, train)
    print(f"{len(jobs)} runs in {flags.out / 'arms'}", file=sys.stderr)
    status = experiment.train_within(jobs, flags, train, experiment.labels_of(whole, preset), plan.together_of(flags, preset))
    if status != 0:
        return status
    report(found, jobs, flags, preset)
    return refine(flags, started) if own and preset is not whole.presets["paper"] else 0


def drawable(jobs: Jobs) -> Jobs:
    """The runs whose samplers can draw of their problems. What is left out of all arms is told on standard error: an arm that
    holds a family out is none where there is no such family."""
    found, told = [], set[str]()
    for run, directory in jobs:
        try:
            draws.check(run)
        except UsageError as error:
            if run.name not in told:
                print(f"left out: {error}", file=sys.stderr)
            told.add(run.name)
        else:
            found.append((run, directory))
    return found


def membership(experiments: Sequence[Experiment]) -> dict[str, tuple[str, ...]]:
    """The names of the experiments that have each arm, by arm."""
    names = {arm for one in experiments for arm in one.arms}
    return {arm: tuple(one.name for one in experiments if arm in one.arms) for arm in names}


def report(experiments: Sequence[Experiment], jobs: Jobs, flags: Flags, preset: Preset) -> None:
    """Write one report per experiment of which an arm was run."""
    for one in experiments:
        order = list(one.arms)
        own = sorted((job for job in jobs if job[0].name in one.arms), key=lambda job: order.index(job[0].name))
        if own:
            print(f"\n{one.name}", flush=True)
            experiment.report(one, experiment.directories_of(one, own, flags, preset), flags.out)


def refine(flags: Flags, started: float) -> int:
    """Run test-time scaling in what is left of the time limit."""
    left = None if flags.limit_seconds is None else flags.limit_seconds - (time.monotonic() - started)
    if left is not None and left <= 0:
        print("trained and reported; the same command goes on with test-time scaling", file=sys.stderr)
        return GOES_ON
    return sequential_scaling.run(
        sequential_scaling.Flags(preset=flags.preset, limit_seconds=left, out=flags.out, seeds=flags.seeds)
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
