"""From the words of a command line to runs: which arms, at which scale, with which seeds, in which directories."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from rlkernel.commands.flags import nearest, parse_flags, shown
from rlkernel.config import Run, fingerprint
from rlkernel.environment.kernel_env import KernelEnvironment
from rlkernel.errors import UsageError
from rlkernel.evaluator.cards import gpus
from rlkernel.runs import directory as rundir
from rlkernel.sources.load import load_for_training
from rlkernel.training import ranks
from rlkernel.training.machine import memory_bytes
from rlkernel.types import Precision, Problem

Jobs = Sequence[tuple[Run, Path]]
"""Runs, each with its directory."""
TOGETHER_BYTES = 6 << 30
"""Memory of the machine that each of several runs side by side wants: two of the small policy took 10.5 GiB at most, with two
evaluators."""
RUN_NAME = re.compile(r"(?P<arm>.+)-seed(?P<seed>\d+)-[0-9a-f]{8}")
"""The name of a run's directory, as `plan` makes it."""


@dataclass(frozen=True)
class Preset:
    """A scale at which the arms of every experiment run."""

    about: str
    """The scale in one line."""
    adapt: Callable[[Run], Run]
    """Turns an arm into the same arm at this scale; what it is about stays."""
    seeds: tuple[int, ...]
    gpu: bool = False
    """Whether the scale needs a GPU."""
    together: int = 1
    """Runs that train side by side, where the machine has the cores and the memory (`together_of`)."""
    policy: tuple[Path, str] | None = None
    """The directory of a model that a checkout does not have, and the command that makes it."""
    estimate: Callable[[Run], str] | None = None
    """What a run needs, where nobody has measured it: one line that calls itself an estimate."""
    rehearse: Callable[[Run], Run] | None = None
    """For `--dry-run`: the arm with random weights at reduced depth and size; None: not offered."""


@dataclass(frozen=True)
class Flags:
    """Flags of an experiment, after the names of its arms. What is not given stays as the arm has it.

    Only operational values can be changed: what an arm is about is fixed by its definition.
    """

    config: Path | None = None
    """A TOML file with flags and arms of your own, see docs/experiments.md; flags of the command line win."""
    list: bool = False
    """Show the arms, who shares them and what they cost, and stop."""
    methods: bool = False
    """Show the registered methods with their formulas, and stop."""
    preset: str = ""
    """cpu or world_cpu (modelled time, small), h200, world or world_shown (measured), or paper (the papers' hyperparameters).
    Empty: h200 where there is a GPU, else cpu."""
    dry_run: bool = False
    """Check every arm, then take one step of it with random weights at reduced size; for presets that cannot run here."""
    limit_seconds: float | None = None
    """Stop at the first checkpoint after so many seconds, with exit status 75; the same command goes on."""
    checkpoint_every: int = 1
    """Steps between checkpoints: what an interruption costs at most. It does not change what is computed."""
    together: int | None = None
    """Runs that train side by side, each in a process of its own, with one evaluator. On the CPU they end with the same weights
    as one after another; each takes memory."""
    out: Path = Path("runs")
    """Directory of the runs and the reports."""
    seeds: tuple[int, ...] | None = None
    """One run per arm and seed; without it, the preset's."""
    problems: str = ""
    """The problems, in place of the arm's: a directory, a .parquet or .jsonl file, or a data set on the hub as
    owner/name[:split][@revision]."""
    validation: str = ""
    """With --problems: where the validation problems are; without it, some of the same source, by a hash of their names."""
    column: tuple[str, ...] = ()
    """Columns of a table of your own, e.g. reference=code name=id; see docs/data.md."""
    style: Literal["", "short", "full", "given", "kernelgym"] = ""
    """Style of the prompt and the feedback, in place of the arm's; see docs/data.md."""
    model: str | None = None
    """`small`, or the name or path of a Hugging Face causal LM, e.g. a policy made by experiments.cold_start."""
    device: str | None = None
    """Where the evaluator runs: auto, cpu, cuda, cuda:N or ray."""
    jobs: int | None = None
    """Evaluations in flight; 0: one per core."""
    evaluation_gib: int | None = None
    """The most GiB that evaluations may take of a card."""
    weights: Literal["float32", "bfloat16"] | None = None
    """The format of the weights that train; bfloat16 takes 6 bytes per parameter instead of 18."""
    precision: Precision | None = None
    """The precision of float32 products in evaluations: pytorch, strict or tf32."""
    timing_width: float | None = None
    """Half of a measured speedup's 95 % interval, relative, at which its trials stop."""
    steps: int | None = None
    """Batches that the run trains on."""
    turns: int | None = None
    """The most turns of a trajectory."""
    prompts_per_step: int | None = None
    """Problems per step, each with its own group."""
    rollouts: int | None = None
    """Trajectories of a group."""
    max_new_tokens: int | None = None
    """The most tokens that the policy may sample in one turn."""
    learning_rate: float | None = None
    """The learning rate after warm-up."""
    validation_every: int | None = None
    """Steps between validations."""
    validation_rollouts: int | None = None
    """Trajectories per validation problem."""


COMMAND = (
    *("config", "list", "methods", "preset", "dry_run", "limit_seconds", "checkpoint_every", "together", "out", "seeds"),
    *("problems", "validation", "column", "style"),
)
OVERRIDES = tuple(flag.name for flag in fields(Flags) if flag.name not in COMMAND)
"""The flags that are fields of `Run`."""


def config_file(argv: Sequence[str]) -> Path | None:
    """The file of `--config`, which says what else the words of a command line may be.

    >>> config_file(["grpo", "--config", "a.toml"]), config_file(["--config=b.toml"]), config_file(["--list"]), config_file([])
    (PosixPath('a.toml'), PosixPath('b.toml'), None, None)
    """
    for word, following in pairwise([*argv, ""]):
        flag, _, value = word.partition("=")
        if flag == "--config" and (value or following):
            return Path(value or following)
    return None


def of_presets(arms: Mapping[str, Run], presets: Mapping[str, Preset]) -> dict[str, str]:
    """Flag -> what each preset makes of it in the first arm: words for its help."""
    first = next(iter(arms.values()))
    runs = {name: preset.adapt(first) for name, preset in presets.items()}
    values = {flag: {name: getattr(run, flag) for name, run in runs.items()} for flag in OVERRIDES}
    values["seeds"] = {name: " ".join(map(str, preset.seeds)) for name, preset in presets.items()}
    values["together"] = {name: preset.together for name, preset in presets.items()}
    return {flag: ", ".join(f"{name} {shown(value)}" for name, value in own.items()) for flag, own in values.items()}


def parse(
    name: str,
    arms: Mapping[str, Run],
    argv: Sequence[str],
    default: Flags | None = None,
    presets: Mapping[str, Preset] | None = None,
) -> tuple[tuple[str, ...], Flags]:
    """The arms and the flags of a command line: arms come first, and no arm means all. default: what holds without a flag.
    presets: those whose values the help tells. Raises UsageError in one line."""
    named = next((i for i, word in enumerate(argv) if word.startswith("-")), len(argv))
    for arm in argv[:named]:
        if arm not in arms:
            raise UsageError(
                f"unknown arm {arm!r}{nearest(arm, arms)}: choose from {', '.join(arms)}, or none for all (--list describes them)"
            )
    told = of_presets(arms, presets) if presets else {}
    flags = parse_flags(default or Flags(), list(argv[named:]), f"python -m experiments.{name}", words="[arm ...]", told=told)
    if flags.seeds is not None and not flags.seeds:
        raise UsageError("--seeds is empty: give at least one, e.g. --seeds 0 1")
    if flags.seeds is not None and len(set(flags.seeds)) < len(flags.seeds):
        raise UsageError(f"--seeds {' '.join(map(str, flags.seeds))}: a seed is there twice; give each once")
    check_limit(flags.limit_seconds)
    if flags.checkpoint_every < 1:
        raise UsageError(f"--checkpoint-every {flags.checkpoint_every}: at least 1")
    if flags.together is not None and flags.together < 1:
        raise UsageError(f"--together {flags.together}: at least 1")
    return tuple(dict.fromkeys(argv[:named])) or tuple(arms), flags


def together_of(flags: Flags, preset: Preset) -> int:
    """How many runs train side by side: what the flag says, else the preset's number as far as cores and memory go, and one where
    a launcher has started several processes."""
    if flags.together is not None:
        return flags.together
    memory = memory_bytes() // TOGETHER_BYTES
    return 1 if ranks.size() > 1 else max(1, min(preset.together, len(os.sched_getaffinity(0)), memory))


def check_limit(seconds: float | None) -> None:
    """Raise UsageError for a time limit that is none."""
    if seconds is not None and seconds <= 0:
        raise UsageError(f"--limit-seconds {seconds:g}: give a positive number of seconds")


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
    Runs of other sizes, or of an earlier version of their methods, are not among them. jobs: those of the command."""
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
        if place == directory and rundir.finished(place, run):
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
