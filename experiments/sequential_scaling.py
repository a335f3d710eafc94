"""More turns at test time keep helping, and showing the best four earlier turns beats showing all (STTS, arXiv 2602.05885).

Nothing is trained. A policy writes 15 turns on every validation problem, and the arms differ in which earlier turns it is shown.
A step of the figure is a turn. Fast@p of "any turn" is the best of the history so far. Fast@p of the last turn is what a user
without an evaluator gets.

Arms: `full` shows all turns until the context is full; such a trajectory ends there and stays as it is. `last` shows the last 4,
`top` the 4 of highest reward, and `window` the best 4 consecutive ones. First turns are equal in all arms. The policy of a seed
is the final weights of `trloo_mrs_pr_prs` with that seed if that run is finished, otherwise the cold start. The manifest names
it.

Expected outcome: best of history rises with the turns in every arm, by its definition. The last turn rises less, or falls. `top`
and `window` are above `full`, whose conversations get longer than those that the policies were trained on.

Cost: 4 arms of 15 turns, of half the trajectories that a validation has; answers repeat, so that the cache helps. With the preset
`h200`, half a minute per run on an H200 where nothing runs beside it.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import anyio

from algorithms import CONTEXTS
from experiments import arms
from experiments.refining import Unit, finished, measure_all
from rlkernel.commands.asked import Preset, check_limit
from rlkernel.commands.experiment import Experiment
from rlkernel.commands.experiment import report as write_reports
from rlkernel.commands.flags import parse_flags
from rlkernel.commands.plan import RUN_NAME
from rlkernel.config import METHODS, Run, to_json
from rlkernel.errors import GOES_ON, UsageError, exit_status
from rlkernel.evaluator.cards import gpus
from rlkernel.method_code import code_of
from rlkernel.refine import Context
from rlkernel.report.claims import Claim
from rlkernel.report.curves import Panel
from rlkernel.report.report import Story
from rlkernel.report.summary import Window
from rlkernel.runs import checkpoints
from rlkernel.runs.weights import weights_digest

TURNS = 15
ARMS: Mapping[str, Context] = {name: cls() for name, cls in CONTEXTS.items()}
PRESETS = tuple(name for name in arms.PRESETS if name != "paper")
"""The presets whose policies are refined: those of this project, not the papers' models."""
TRAINED = arms.MRS_PR_PRS
"""The arm whose final weights are refined, where they exist."""
LAST = Window(last=1)
PAPER = "Dr. Kernel-14B, KernelBench level 2, Fast@1.2: 25.6 after 3 turns; with STTS 31.6 last turn, 47.8 best of history"
PLAIN = "direction only: the top 4 beat the plain history"
CLAIMS = (
    Claim(
        "More turns help: 15 against 3, best of history, which cannot fall",
        "top",
        "top",
        "fast_1.2",
        PAPER,
        window=LAST,
        worse_window=Window(step=3),
        certain=True,
    ),
    Claim(
        "The last turn improves, too: 15 against 3",
        "top",
        "top",
        "fast_1.2_last",
        PAPER,
        window=LAST,
        worse_window=Window(step=3),
    ),
    Claim("Top-4 is above the full history, best of history", "top", "full", "fast_1.2", PLAIN, window=LAST),
    Claim("Top-4 is above the full history, last turn", "top", "full", "fast_1.2_last", PLAIN, window=LAST),
    Claim("Top-4 is above the last 4, last turn", "top", "last", "fast_1.2_last", "not in the paper", window=LAST),
    Claim("The best window of 4 is above the full history, last turn", "window", "full", "fast_1.2_last", PLAIN, window=LAST),
)
PANELS = (
    Panel("Mean reward of the turns so far", (("reward", "-", ""),), False),
    Panel("Fast@1", (("fast_1", "-", "best of history"), ("fast_1_last", "--", "last turn")), True),
    Panel("Fast@1.2", (("fast_1.2", "-", "best of history"), ("fast_1.2_last", "--", "last turn")), True),
    Panel("Hacking and lazy rates", (("hacking_rate", "-", "hacking"), ("lazy_rate", "--", "lazy")), True),
)
STORY = Story("Sequential test-time scaling", __doc__ or "", CLAIMS, PANELS, axis="turn")


@dataclass(frozen=True)
class Flags:
    """Refine with a trained policy over many turns, by which earlier turns it is shown."""

    list: bool = False
    """Show the arms and what they cost, and stop."""
    preset: str = ""
    """cpu or world_cpu (modelled time), h200, world or world_shown (measured). Empty: h200 where there is a GPU, else cpu."""
    limit_seconds: float | None = None
    """Begin no further arm after so many seconds: exit status 75, the same command goes on."""
    out: Path = Path("runs")
    """Directory of the runs and the report."""
    seeds: tuple[int, ...] | None = None
    """Seeds to run. Without it, the preset's."""
    together: int = len(ARMS)
    """Units, each an arm and a seed, that are measured side by side: one policy samples for them, and one evaluator judges."""
    model: str | None = None
    """`small`, or a directory or name; without it, the trained arm's final weights where they exist."""
    turns: int = TURNS
    rollouts: int | None = None
    """Trajectories per problem; without it, half as many as in the preset's validation."""
    max_new_tokens: int | None = None
    """Longest answer of a turn in tokens. Without it, as in training."""
    problems: int | None = None
    """Only the first so many problems of the validation split."""


def weights(preset: Preset, seed: int, out: Path) -> str:
    """The model to refine: the last checkpoint of the trained arm with this seed and these problems, of the run that finished
    last, whatever its sizes; without one, the arm's own model before training."""
    trained = preset.adapt(TRAINED)
    wanted = {key: value for key, value in to_json(trained).items() if key in (*METHODS, "device", "problems")}
    found: dict[str, Path] = {}
    for path in (out / "arms").glob(f"{TRAINED.name}-seed{seed}-*/manifest.json"):
        manifest = json.loads(path.read_text(encoding="utf-8"))
        saved = checkpoints.complete(path.parent / "checkpoints")
        if "finished" in manifest and saved and all(manifest["run"][key] == value for key, value in wanted.items()):
            found[manifest["finished"]] = saved[max(saved)]
    return str(found[max(found)]) if found else trained.model


def refined(preset: Preset) -> Run:
    """The run whose problems, policy and sizes test-time scaling has at a preset. A unit takes several times the turns of a
    validation, so it has half the trajectories."""
    base = preset.adapt(TRAINED)
    problems = tuple(problem for problem in base.problems if problem.split == "validation")
    return replace(base, problems=problems, turns=TURNS, validation_rollouts=max(1, base.validation_rollouts // 2))


def plan(flags: Flags, preset: Preset) -> list[Unit]:
    """What is to be measured, seed by seed. A directory's name holds a hash of everything that decides the outcome, the weights
    too: a policy that was made anew is another one."""
    units = []
    for seed in flags.seeds or preset.seeds:
        base = refined(preset)
        run = replace(
            base,
            problems=base.problems[: flags.problems],
            seed=seed,
            turns=flags.turns,
            model=flags.model or weights(preset, seed, flags.out),
            validation_rollouts=flags.rollouts or base.validation_rollouts,
            max_new_tokens=flags.max_new_tokens or base.max_new_tokens,
        )
        for arm, context in ARMS.items():
            decides = [to_json(replace(run, name=arm)), to_json(context), code_of([run, context]), weights_digest(run.model)]
            what = json.dumps(decides, sort_keys=True)
            directory = flags.out / "refined" / f"{arm}-seed{seed}-{hashlib.sha256(what.encode()).hexdigest()[:8]}"
            units.append(Unit(context, replace(run, name=arm), directory))
    return units


def main(argv: Sequence[str]) -> int:
    """The command. Its exit statuses are those of the other experiments."""
    return exit_status(lambda: _main(list(argv)))


def _main(argv: list[str]) -> int:
    return run(parse_flags(Flags(), argv, "python -m experiments.sequential_scaling"))


def run(flags: Flags) -> int:
    """Measure what is not measured yet, and report. Raises UsageError."""
    started = time.monotonic()
    name = flags.preset or ("h200" if gpus.select("auto") else "cpu")
    if name not in PRESETS:
        raise UsageError(f"--preset {name}: choose from {', '.join(PRESETS)}")
    if flags.seeds is not None and not flags.seeds:
        raise UsageError("--seeds is empty: give at least one, e.g. --seeds 0 1")
    check_limit(flags.limit_seconds)
    for flag in ("together", "turns", "rollouts", "max_new_tokens", "problems"):
        given = getattr(flags, flag)
        if given is not None and given < 1:
            raise UsageError(f"--{flag.replace('_', '-')} {given}: at least 1")
    preset = arms.PRESETS[name]
    units = plan(flags, preset)
    if flags.list:
        for unit in units:
            answers = unit.run.turns * unit.run.validation_rollouts * len(unit.run.problems)
            print(f"{unit.run.name:8} seed {unit.run.seed}  {answers:,} answers of {unit.run.model}  {to_json(unit.context)}")
        return 0
    if preset.gpu and not gpus.select("auto") and not all(finished(unit) for unit in units):
        raise UsageError(f"--preset {name} needs a GPU, and there is none: use --preset cpu")
    until = None if flags.limit_seconds is None else started + flags.limit_seconds
    if not anyio.run(partial(measure_all, units, flags.together, flags.out / "evaluations", until)):
        print(f"stopped after {flags.limit_seconds:g} s: the same command goes on", file=sys.stderr)
        return GOES_ON
    order = {arm: i for i, arm in enumerate(ARMS)}
    names = (RUN_NAME.fullmatch(path.name) for path in (flags.out / "refined").iterdir())
    seeds = sorted({int(name["seed"]) for name in names if name} | {unit.run.seed for unit in units})
    # Seeds of earlier commands are reported, too.
    units = [unit for unit in plan(replace(flags, seeds=tuple(seeds)), preset) if finished(unit)]
    directories = [unit.directory for unit in sorted(units, key=lambda unit: order[unit.run.name])]
    write_reports(Experiment("sequential_scaling", {}, arms.PRESETS, STORY), directories, flags.out)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
