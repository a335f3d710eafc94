"""From what a command line asks for to runs: which arms, at which scale, with which seeds, in which directories."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlkernel.commands.asked import OVERRIDES, Flags, Preset
from rlkernel.config import Run, fingerprint
from rlkernel.environment.kernel_env import KernelEnvironment
from rlkernel.errors import UsageError
from rlkernel.evaluator.cards import gpus
from rlkernel.runs import directory as rundir
from rlkernel.sources.load import load_for_training
from rlkernel.training import ranks
from rlkernel.training.machine import memory_bytes
from rlkernel.types import Problem

Jobs = Sequence[tuple[Run, Path]]
"""Runs, each with its directory."""
TOGETHER_BYTES = 6 << 30
"""Memory of the machine that each of several runs side by side wants: two of the small policy took 10.5 GiB at most, with two
evaluators."""
RUN_NAME = re.compile(r"(?P<arm>.+)-seed(?P<seed>\d+)-[0-9a-f]{8}")
"""The name of a run's directory, as `plan` makes it."""


def together_of(flags: Flags, preset: Preset) -> int:
    """How many runs train side by side: what the flag says, else the preset's number as far as cores and memory go, and one where
    a launcher has started several processes."""
    if flags.together is not None:
        return flags.together
    memory = memory_bytes() // TOGETHER_BYTES
    return 1 if ranks.size() > 1 else max(1, min(preset.together, len(os.sched_getaffinity(0)), memory))


def plan(arms: Mapping[str, Run], flags: Flags, preset: Preset) -> Jobs:
    """The runs in the order in which they are trained: seed by seed, so that arms can be compared early.

    Raises UsageError for a value that no run can have, and for arms that the flags make equal.
    """
    given = {**_given_sizes(flags), **_given_problems(flags)}
    seeds = dict.fromkeys(flags.seeds or preset.seeds)
    jobs = [_job(run, seed, given, flags, preset) for seed in seeds for run in arms.values()]
    check_arms({run.name: run for run, _ in jobs})
    return jobs


def _given_sizes(flags: Flags) -> dict[str, Any]:
    return {name: value for name in OVERRIDES if (value := getattr(flags, name)) is not None}


def _job(run: Run, seed: int, given: Mapping[str, Any], flags: Flags, preset: Preset) -> tuple[Run, Path]:
    try:
        adapted = _styled(replace(preset.adapt(run), seed=seed, **given), flags.style)
    except ValueError as error:
        raise UsageError(_by_flag(str(error), given)) from error
    return adapted, flags.out / "arms" / f"{run.name}-seed{seed}-{fingerprint(adapted)[:8]}"


def _by_flag(told: str, given: Mapping[str, Any]) -> str:
    """What is said of a run's field, said of the flag that has set it; as it is for a field that no flag has set.

    >>> _by_flag("Run.seed is -1: use more", {}), _by_flag("Run.steps is 0", {"steps": 0}), _by_flag("Run.gamma is 2", {})
    ('--seeds -1: use more', '--steps 0', 'Run.gamma is 2')
    """
    flags = {"seed": "--seeds", **{name: f"--{name.replace('_', '-')}" for name in given}}
    return re.sub(r"^Run\.(\w+) is ", lambda found: f"{flags[found[1]]} " if found[1] in flags else found[0], told)


def finished_beside(jobs: Jobs, arms: Mapping[str, Run], flags: Flags, preset: Preset) -> Jobs:
    """The finished runs of the folder that are not among `jobs`, and that the same command makes for other arms or other seeds.
    Runs of other sizes, of an earlier version of their methods, or from weights that have been made anew since, are not among
    them. jobs: those of the command."""
    given = {**_given_sizes(flags), **({"problems": jobs[0][0].problems} if flags.problems else {})}
    known, named = {directory for _, directory in jobs}, {run.name: run for run, _ in jobs}
    found = []
    for directory in sorted((flags.out / "arms").glob("*-seed*-*")):
        name = RUN_NAME.fullmatch(directory.name)
        if name is None or name["arm"] not in arms or directory in known:
            continue
        try:
            run, place = _job(arms[name["arm"]], int(name["seed"]), given, flags, preset)
            if run.name not in named:
                check_arms({**named, run.name: run})
        except UsageError:  # with these flags the arm is no run, or the same as one that is there
            continue
        if place == directory and not rundir.began_elsewhere(place, run) and rundir.finished(place, run):
            found.append((run, place))
    return found


def _given_problems(flags: Flags) -> dict[str, tuple[Problem, ...]]:
    """The field of a Run for `--problems`; none without the flag. Says what was found. Raises UsageError."""
    if not flags.problems:
        if flags.validation or flags.column:
            raise UsageError("--validation and --column belong to --problems SOURCE: give that too")
        return {}
    loaded = load_for_training(flags.problems, flags.validation, flags.column)
    for line in (line for source in loaded for line in source.lines()):
        print(line, file=sys.stderr)
    return {"problems": tuple(problem for source in loaded for problem in source.problems)}


def _styled(run: Run, style: str) -> Run:
    """The run with `--style`. Raises UsageError where its problems lack what the style needs."""
    if style:
        run = replace(run, environment=KernelEnvironment(style))  # type: ignore[arg-type]
    if isinstance(run.environment, KernelEnvironment):
        run.environment.check(run.problems)
    return run


def check_arms(arms: Mapping[str, Run]) -> None:
    """Raise UsageError for no arms, for two arms that differ in nothing but their names, whose difference would be noise, and
    for an arm whose run has another name."""
    if not arms:
        raise UsageError("ARMS is empty: give the experiment at least one Run")
    seen: dict[str, str] = {}
    for name, run in arms.items():
        if run.name != name:
            raise UsageError(f"arm {name!r} holds a run named {run.name!r}: give both the same name")
        same = seen.setdefault(fingerprint(replace(run, name="arm", seed=0)), name)
        if same != name:
            raise UsageError(
                f"arms {same!r} and {name!r} differ in nothing: change what one is about, or the flag that levels them"
            )


def choose_preset(presets: Mapping[str, Preset], flags: Flags) -> Preset:
    """The preset that was asked for, or this machine's. Raises UsageError for one that does not exist or has no rehearsal."""
    name = flags.preset or ("h200" if gpus.select("auto") and "h200" in presets else "cpu")
    if name not in presets:
        raise UsageError(f"--preset {name}: choose from {', '.join(presets)}")
    if flags.dry_run and presets[name].rehearse is None:
        offered = ", ".join(other for other, preset in presets.items() if preset.rehearse is not None)
        raise UsageError(f"--dry-run is for presets that may not fit this machine ({offered}); --preset {name} can simply be run")
    return presets[name]


def check_device(jobs: Jobs, preset: Preset, flags: Flags) -> None:
    """Raise UsageError for a device that is not there, or a preset that needs a GPU where there is none, before anything is
    imported that takes seconds. Finished runs are reported anywhere."""
    if flags.dry_run or all(rundir.finished(directory, run) for run, directory in jobs):
        return
    if flags.device is not None:
        from rlkernel.training.placement import select

        try:
            select(flags.device)
        except ValueError as error:
            raise UsageError(f"--device: {error}") from error
    elif preset.gpu and not gpus.select("auto"):
        name = next(run.name for run, directory in jobs if not rundir.finished(directory, run))
        rehearsal = ", or --dry-run" if preset.rehearse is not None else ""
        raise UsageError(f"{name} is not finished, its preset needs a GPU, and there is none: use --preset cpu{rehearsal}")


def check_policy(jobs: Jobs, preset: Preset, flags: Flags) -> None:
    """Raise UsageError where the preset's own policy was not made yet and a run needs it."""
    if preset.policy is None or flags.dry_run or preset.policy[0].is_dir():
        return
    directory, command = preset.policy
    if any(run.model == str(directory) and not rundir.finished(place, run) for run, place in jobs):
        raise UsageError(f"the preset's policy is not in {directory}: make it with `{command}`, or give --model small")
