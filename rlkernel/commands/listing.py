"""Tables of what an experiment offers: its arms with their cost (`--list`), and the registered methods (`--methods`)."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from rlkernel.commands.asked import Preset
from rlkernel.config import Run, to_json
from rlkernel.report.configurations import differences
from rlkernel.report.terminal import COLUMNS

Tables = Mapping[str, Mapping[str, type]]
"""Field of `Run` -> name -> class: the registered methods."""


def cost(run: Run) -> int:
    """How many answers one run samples and evaluates, in training and validation."""
    training = run.steps * run.prompts_per_step * run.rollouts
    problems = sum(problem.split == "validation" for problem in run.problems)
    # Before the first step, every `validation_every` steps, and after the last.
    measurements = 1 + -(-run.steps // run.validation_every)
    return run.turns * (training + measurements * problems * run.validation_rollouts)


def list_arms(
    arms: Mapping[str, Run], sharing: Mapping[str, Sequence[str]], preset: Preset, listed: Sequence[str] | None = None
) -> None:
    """Print for each arm the cost of one run and which other experiments have it; below it, what differs from the first of
    `arms`. listed: the arms that are shown; None: all."""
    differs, first = differences({arm: to_json(run) for arm, run in arms.items()}), next(iter(arms))
    width = max(map(len, ("arm", *arms)))
    lines = [f"{'arm':{width}}  steps  answers per run  shared with", f"    what differs from {first}"]
    arms = {arm: run for arm, run in arms.items() if listed is None or arm in listed}
    for arm, run in arms.items():
        own = {key: value for key, value in differs[arm].items() if arm == first or value != differs[first][key]}
        what = "; ".join(f"{key} = {value}" for key, value in own.items()) or (
            "the arm that the others are compared with" if arm == first else "differs in nothing"
        )
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
    """Print the registered methods: name, class with the values of its fields, and below these the first sentence of what it says
    of itself."""
    names = [(kind, name, cls) for kind, classes in tables.items() for name, cls in classes.items()]
    if not names:
        return
    kinds, width = (max(map(len, column)) for column in (("method", *tables), ("name", *(name for _, name, _ in names))))
    lines = [f"{'method':{kinds}}  {'name':{width}}  class", "    formula"]
    for kind, name, cls in names:
        about = f"{kind:{kinds}}  {name:{width}}  {_brief(to_json(cls()))}"
        formula = " ".join((cls.__doc__ or "").strip().split("\n\n")[0].split())
        lines += textwrap.wrap(about, COLUMNS, subsequent_indent=" " * (kinds + width + 6), break_on_hyphens=False)
        lines += textwrap.wrap(formula, COLUMNS, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
    Console(width=COLUMNS).print("\n".join(lines), markup=False, highlight=False)


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
