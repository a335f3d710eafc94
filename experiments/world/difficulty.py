"""How hard the world is: the best speedup of each problem, the share of right drafts by kind, what a schedule loses elsewhere.

    python -m experiments.world.difficulty --limit-seconds 540                 # after experiments.world.oracle
    python -m experiments.world.difficulty --device cpu --drafts 1 --shapes 0  # modelled

It judges drafts of the teacher on the validation problems, and the same schedules on several shapes of training compositions, and
writes `world_difficulty.png` and `world_difficulty.json` into docs/results. Run it again after exit status 75.
"""

from __future__ import annotations

import json
import math
import random
import statistics
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio

from envs.world.drafts import Draft
from envs.world.draw import FAMILIES, Ranges, candidate
from envs.world.oracles import load_oracles
from envs.world.schedule import Schedule, coarsest, draw, sound
from envs.world.suite import training_tasks, validation_tasks
from envs.world.task import Task
from envs.world.teacher import Variant, write
from experiments.world.judged import RUNS, Item, Ledger, deadline, families_of, item_of, judge, open_ledger, timing_of
from experiments.world.oracle import speedup
from rlkernel.commands.flags import parse_flags
from rlkernel.errors import GOES_ON, exit_status
from rlkernel.evaluator.pool import open_pool
from rlkernel.metrics import log_oracle
from rlkernel.types import Timing

COMPOSITIONS = 3
"""Compositions of a family whose schedules are tried on several shapes."""
SCHEDULES = 48
"""Schedules that are tried on every shape."""


def teacher_items(tasks: Sequence[Task], drafts: int) -> dict[Variant, list[Item]]:
    """`drafts` drafts of every variant for each task, with the mistakes that the teacher makes."""
    found: dict[Variant, list[Item]] = {variant: [] for variant in Variant}
    for task in tasks:
        for variant in Variant:
            rng = random.Random(f"difficulty {task.name} {variant}")
            found[variant] += [item_of(write(task, variant, rng), f"{variant} {k}") for k in range(drafts)]
    return found


def shapes_of(task: Task, count: int, rng: random.Random) -> list[Task]:
    """The task at `count` different sizes and dtypes."""
    found = {task.name: task}
    for _ in range(500):
        other = candidate(task.family, rng, Ranges(), task.steps)
        if other is not None and other.dtype == task.dtype:
            found.setdefault(other.name, other)
        if len(found) == count:
            break
    return list(found.values())


def shared_schedules(tasks: Sequence[Task], rng: random.Random) -> list[Schedule]:
    """Different schedules with fewest kernels, whose knobs are sound at every shape."""
    found: dict[Schedule, None] = {}
    for _ in range(20 * SCHEDULES):
        schedule = draw(tasks[0], rng, coarsest(tasks[0]))
        if all(_fits(task, schedule) for task in tasks):
            found.setdefault(schedule)
        if len(found) == SCHEDULES:
            break
    return list(found)


def _fits(task: Task, schedule: Schedule) -> bool:
    return tuple((stage.first, stage.last) for stage in schedule) == coarsest(task) and all(sound(task, s) for s in schedule)


def transfer_items(shapes: int, families: Sequence[str]) -> dict[str, list[list[list[Item]]]]:
    """Family -> compositions -> shapes -> the same schedules as items."""
    found: dict[str, list[list[list[Item]]]] = {}
    for family in families:
        rng = random.Random(f"transfer {family}")
        tasks = training_tasks([family]) or validation_tasks([family])
        groups = []
        for task in rng.sample(tasks, min(COMPOSITIONS, len(tasks))):
            same = shapes_of(task, shapes, rng)
            schedules = shared_schedules(same, rng)
            if len(same) > 1 and len(schedules) > 1:
                groups.append([[item_of(Draft(one, schedule)) for schedule in schedules] for one in same])
        found[family] = groups
    return found


def losses(groups: Sequence[Sequence[Sequence[Item]]], ledger: Ledger) -> list[float]:
    """For each pair of shapes of a composition: the share of the best speedup that the other shape's best schedule loses."""
    found = []
    for group in groups:
        speeds = [[speedup(ledger, item) for item in items] for items in group]
        best = [max(range(len(row)), key=row.__getitem__) for row in speeds]
        for a in range(len(speeds)):
            found += [1 - speeds[b][best[a]] / max(speeds[b]) for b in range(len(speeds)) if a != b and max(speeds[b]) > 0]
    return found


def oracle_fraction(items: Sequence[Item], gains: Mapping[str, float], ledger: Ledger) -> float:
    """The mean of log(speedup) / log(oracle) over drafts, 0 for what is slower or not correct. gains: log(oracle) by problem."""
    known = [item for item in items if item.draft.task.name in gains]
    found = [math.log(max(1.0, speedup(ledger, item))) / gains[item.draft.task.name] for item in known]
    return statistics.mean(found) if found else 0.0


def gains_of(tasks: Sequence[Task], timing: Timing) -> dict[str, float]:
    """log(oracle) of the problems that count in the metric `oracle_fraction`, beside which the teacher's level is drawn."""
    oracles = load_oracles()
    problems = [replace(task.problem(), oracles=oracles.get(task.name, ())) for task in tasks]
    return {problem.name: gain for problem in problems if (gain := log_oracle(problem, timing)) is not None}


def facts(
    variants: Mapping[Variant, Sequence[Item]], groups: Mapping[str, Any], ledger: Ledger, timing: Timing
) -> dict[str, Any]:
    """The numbers of the figure."""
    best: dict[str, list[float]] = defaultdict(list)
    for task in validation_tasks():
        best[task.family] += [o.speedup for o in load_oracles().get(task.name, ()) if o.timing == timing]
    right = {
        str(variant): statistics.mean(ledger.rows[item.key]["status"] == "correct" for item in items)
        for variant, items in variants.items()
        if items
    }
    fast = {str(v): statistics.mean(speedup(ledger, item) >= 1.2 for item in items) for v, items in variants.items() if items}
    gains = gains_of(validation_tasks(), timing)
    every = [item for items in variants.values() for item in items]
    names = sorted({item.draft.task.name for item in every})
    eager = [float(row["reference_us"]) for row in ledger.rows.values() if row["reference_us"]]
    lost = {family: losses(found, ledger) for family, found in groups.items()}
    return {
        "timing": timing,
        "best_speedup": dict(best),
        "right_by_kind": right,
        "fast_by_kind": fast,
        "oracle_fraction_by_kind": {str(v): oracle_fraction(items, gains, ledger) for v, items in variants.items() if items}
        if gains
        else {},
        "teacher_best": {name: max(speedup(ledger, item) for item in every if item.draft.task.name == name) for name in names},
        "reference_us": {"least": min(eager, default=None), "most": max(eager, default=None)},
        "loss_on_another_shape": {family: {"median": statistics.median(v), "most": max(v)} for family, v in lost.items() if v},
    }


def draw_figure(found: Mapping[str, Any], path: Path) -> None:
    """Draw the three parts side by side."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (one, two, three) = pyplot.subplots(1, 3, figsize=(15, 4.2), constrained_layout=True)
    families = [family for family in FAMILIES if found["best_speedup"].get(family)]
    for place, family in enumerate(families):
        values = sorted(found["best_speedup"][family])
        one.scatter([place + 0.5 * k / len(values) - 0.25 for k in range(len(values))], values, s=14)
    one.set(title="Best speedup found, per validation problem", yscale="log", xticks=range(len(families)))
    one.set_xticklabels(families, rotation=30)
    one.axhline(1.0, color="#888888", linewidth=0.8)
    kinds = list(found["right_by_kind"])
    two.barh(kinds, list(found["right_by_kind"].values()), label="correct")
    two.barh(kinds, list(found["fast_by_kind"].values()), height=0.4, label="and at 1.2x or more")
    two.set(title="Right first drafts, by kind", xlim=(0, 1))
    two.legend(frameon=False)
    lost = found["loss_on_another_shape"]
    three.barh(list(lost), [row["most"] for row in lost.values()], label="most")
    three.barh(list(lost), [row["median"] for row in lost.values()], height=0.4, label="median")
    three.axvline(0.2, color="#888888", linewidth=0.8)
    three.set(title="What the best schedule loses on another shape", xlim=(0, 1))
    three.legend(frameon=False)
    figure.suptitle(f"{found['timing']} time", x=0.01, ha="left", fontsize=9)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


@dataclass(frozen=True)
class Flags:
    """Measure how hard the world's problems are."""

    drafts: int = 3
    """Drafts of each kind per validation problem."""
    shapes: int = 3
    """Shapes on which the same schedules are tried; 0: none."""
    families: tuple[str, ...] = ()
    """Families of problems; without it, all."""
    device: str = "auto"
    """What judges: auto, cpu (modelled time), cuda or cuda:N."""
    out: Path = Path("docs/results")
    """Directory of the figure and its numbers."""
    limit_seconds: float | None = None
    """Stop after so many seconds with exit status 75."""


async def run(flags: Flags) -> int:
    """Judge, write and draw; the exit status."""
    until, families = deadline(flags.limit_seconds), families_of(flags.families)
    variants = teacher_items(validation_tasks(families), flags.drafts)
    groups = transfer_items(flags.shapes, families) if flags.shapes > 1 else {}
    items = [item for found in variants.values() for item in found]
    items += [item for found in groups.values() for group in found for shape in group for item in shape]
    async with open_pool(device=flags.device, cache_dir=RUNS / "evaluations") as pool:
        timing = timing_of(pool)
        ledger = open_ledger("difficulty", pool)
        complete = await judge(items, pool, ledger, until=until)
    if not complete:
        print(f"{len(ledger.rows)} of {len(items)} judged; the same command goes on", file=sys.stderr)
        return GOES_ON
    found = facts(variants, groups, ledger, timing)
    flags.out.mkdir(parents=True, exist_ok=True)
    (flags.out / "world_difficulty.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    draw_figure(found, flags.out / "world_difficulty.png")
    print(json.dumps({key: value for key, value in found.items() if key != "best_speedup"}, indent=1))
    return 0


def main(argv: Sequence[str]) -> int:
    """The command."""
    return exit_status(lambda: anyio.run(run, parse_flags(Flags(), list(argv), "python -m experiments.world.difficulty")))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
