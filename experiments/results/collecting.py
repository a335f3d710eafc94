"""Finds the finished runs of a directory by experiment: those of its arms as they are now, of one scale each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from experiments import arms, sequential_scaling
from experiments.catalogue import NAMES, load
from experiments.results.pages import Found, bands_of
from experiments.results.transcripts import REFINED
from rlkernel.config import METHODS, Run, to_json
from rlkernel.report.summary import RunRecord, is_finished, read_run
from rlkernel.settings import Loss, Optimiser, Stop

SCALE = (
    *("problems", "environment", "model", "rollouts", "max_new_tokens", "temperature", "steps"),
    *("validation_every", "validation_rollouts"),
)
"""The fields of a run that all arms of a comparison share."""
RELATIVE = ("learning_rate", "turns", "prompts_per_step", "validation_turns")
"""Sizes in which arms may differ: a scale multiplies those of all arms by the same numbers."""
SETTINGS: Mapping[str, type] = {"loss": Loss, "optimiser": Optimiser, "stop": Stop}
"""The fields of a `Run` that group others."""
NUMBERS = {"updates": 1, "epochs": 1, "max_grad_norm": 1.0, "refresh_tokens": 0}
"""The fields that are younger than some runs, at what adds nothing."""
METHOD = (*METHODS, "gamma", "staleness", "rollout_dtype", *NUMBERS, *SETTINGS)
"""The fields that make an arm what it is."""
OF_AN_ARM = (*METHOD, *RELATIVE)
"""The fields that all runs of an arm share at one scale, besides the scale's own."""


def collect(runs: Path) -> Iterator[Found]:
    """All experiments with their finished runs, of one scale each."""
    trained = _finished(runs / "arms")
    for name in NAMES:
        experiment = load(name)
        own = [run for run in trained if run.arm in experiment.arms and _is_arm(run, to_json(experiment.arms[run.arm]))]
        chosen = _ordered(_one_scale(own, scale_of(name)), order_of(name))
        preset = _preset(chosen[0], experiment.arms[chosen[0].arm], (*SCALE, *RELATIVE)) if chosen else ""
        yield Found(name, experiment.story, chosen, preset, bands_of(chosen))
    refined = [run for run in _finished(runs / "refined") if run.arm in sequential_scaling.ARMS]
    chosen = _ordered(_one_scale(refined, scale_of(REFINED)), order_of(REFINED))
    preset = refined_preset(chosen[0]) if chosen else ""
    yield Found(REFINED, sequential_scaling.STORY, chosen, preset, bands_of(chosen))


def _finished(directory: Path) -> list[RunRecord]:
    runs = [path.parent for path in sorted(directory.glob("*/manifest.json"))]
    return [read_run(run) for run in runs if is_finished(run)]


def _is_arm(run: RunRecord, arm: Mapping[str, Any]) -> bool:
    """Whether a run is of this arm as it is defined now; its sizes may differ. A field that is younger than the run is at its
    default, which adds nothing."""
    defaults = {**NUMBERS, **{name: to_json(kind()) for name, kind in SETTINGS.items()}}
    return all(run.manifest["run"].get(key, defaults.get(key)) == arm[key] for key in METHOD)


def _one_scale(runs: Sequence[RunRecord], scale: Callable[[RunRecord], str]) -> list[RunRecord]:
    """The runs of one scale: a measured one before a modelled one, then the one with most runs. Of two runs of one arm and seed,
    the later one is taken."""
    scales: dict[tuple[str | None, str], list[RunRecord]] = {}
    for run in runs:
        scales.setdefault((run.timing, scale(run)), []).append(run)
    if not scales:
        return []
    best = max(scales.values(), key=lambda of: (of[0].timing == "measured", len(of)))
    latest: dict[tuple[str, int], RunRecord] = {}
    for run in sorted(best, key=lambda run: str(run.manifest["finished"])):
        latest[run.arm, run.seed] = run
    return list(latest.values())


def scale_of(name: str) -> Callable[[RunRecord], str]:
    """What tells the scale of an experiment's run."""
    return _refined_scale if name == REFINED else partial(_scale, defined=load(name).arms)


def _scale(run: RunRecord, defined: Mapping[str, Run]) -> str:
    """The scale of a run: the preset whose sizes it has, otherwise its own sizes, with ratios to the arm's where arms may
    differ."""
    if preset := _preset(run, defined[run.arm], (*SCALE, *RELATIVE)):
        return preset
    found, arm = run.manifest["run"], to_json(defined[run.arm])
    ratios = [float(f"{found[key] / (arm[key] or 1):.6g}") for key in RELATIVE]
    return json.dumps([*(found[key] for key in SCALE), *ratios], sort_keys=True)


def _refined_scale(run: RunRecord) -> str:
    dump = run.manifest["run"]
    # Each seed refines its own weights.
    model = "checkpoint" if "checkpoint" in dump["model"] else dump["model"]
    return json.dumps([model, *(dump[key] for key in (*SCALE, "turns") if key not in ("model", "steps"))], sort_keys=True)


def _preset(run: RunRecord, arm: Run, keys: Sequence[str]) -> str:
    """The name of the preset whose values of `keys` the run has, or nothing."""
    for name, preset in arms.PRESETS.items():
        dump = to_json(preset.adapt(arm))
        if all(run.manifest["run"].get(key) == dump[key] for key in keys):
            return name
    return ""


def refined_preset(run: RunRecord) -> str:
    """The preset whose sizes a run of test-time scaling has, or nothing: of two, the one whose policy it refined."""
    found = run.manifest["run"]
    dumps = {name: to_json(sequential_scaling.refined(arms.PRESETS[name])) for name in sequential_scaling.PRESETS}
    keys = [*(key for key in SCALE if key != "model"), "turns"]  # each seed may refine its own weights
    named = [name for name, dump in dumps.items() if all(found[key] == dump[key] for key in keys)]
    return next(iter(sorted(named, key=lambda name: dumps[name]["model"] != found["model"])), "")


def _ordered(runs: Sequence[RunRecord], order: Sequence[str]) -> tuple[RunRecord, ...]:
    return tuple(sorted(runs, key=lambda run: (order.index(run.arm), run.seed)))


def order_of(name: str) -> list[str]:
    """The arms of an experiment, in the order of its pages."""
    return list(sequential_scaling.ARMS if name == REFINED else load(name).arms)
