"""What the words of an experiment's command line may be, and what they ask for: arms, a scale and flags."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Literal

from rlkernel.commands.flags import nearest, parse_flags, shown
from rlkernel.config import Run
from rlkernel.errors import UsageError
from rlkernel.types import Precision


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


def check_limit(seconds: float | None) -> None:
    """Raise UsageError for a time limit that is none."""
    if seconds is not None and not seconds > 0:  # nan is above nothing
        raise UsageError(f"--limit-seconds {seconds:g}: give a positive number of seconds")
