"""Search the schedule space for the fastest candidate of each validation problem, and store its speedup as the oracle.

    python -m experiments.world.oracle --limit-seconds 540              # all 90 problems on the cards that are visible
    python -m experiments.world.oracle --device cpu --families chain    # modelled, and labelled so

First points are drawn from all of the space, then neighbours of the best ones, in two rounds. The table is written when all
points are judged: `envs/world/oracles.json`. Run it again after exit status 75; judged points are kept in `runs/world`.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio

from envs.world.drafts import Draft
from envs.world.oracles import TABLE, store
from envs.world.schedule import TORCH, Cut, Schedule, cuts, draw, draw_stage, forms, knobs_of, needs_tf32, sound
from envs.world.suite import training_tasks, validation_tasks
from envs.world.task import Task
from experiments.world.judged import RUNS, Item, Ledger, card_of, deadline, families_of, item_of, judge, open_ledger, timing_of
from rlkernel.commands.flags import parse_flags
from rlkernel.errors import GOES_ON, exit_status
from rlkernel.evaluator.pool import Pool, open_pool

DRAWN, NEIGHBOURS, BEST = 96, 24, 4
"""Points that are drawn first; neighbours in each of the two rounds that follow; how many of the best have neighbours."""
ROUNDS = 2
PATIENCE = 40
"""Draws per wanted point, after which a small space counts as exhausted."""


def drawn(task: Task, count: int, *, tf32: bool) -> list[Item]:
    """`count` different points of the space, or all of a smaller one. Most have few kernels; some leave work to torch."""
    rng = random.Random(f"oracle {task.name}")
    every: list[Cut] = list(cuts(task))
    few = [cut for cut in every if len(cut) == len(every[0])]
    found: dict[str, Item] = {}
    for _ in range(PATIENCE * count):
        cut = rng.choice(few if rng.random() < 0.6 else every)
        schedule = draw(task, rng, cut, torch_share=0.0 if len(cut) == 1 else 0.25, tf32=tf32)
        if any(stage.form != TORCH for stage in schedule):
            item = item_of(Draft(task, schedule))
            found.setdefault(item.key, item)
        if len(found) == count:
            break
    return list(found.values())


def neighbours(task: Task, known: Sequence[Item], ledger: Ledger, count: int, number: int, *, tf32: bool) -> list[Item]:
    """`count` new points near the fastest of the known ones: one or two knobs turned, or another form for a stage."""
    rng = random.Random(f"oracle {task.name} {number}")
    best = sorted(known, key=lambda item: -speedup(ledger, item))[:BEST]
    keys = {item.key for item in known}
    found: dict[str, Item] = {}
    for _ in range(PATIENCE * count):
        schedule = turned(task, rng.choice(best).draft.schedule, rng)
        if schedule is None or (needs_tf32(schedule) and not tf32):
            continue
        item = item_of(Draft(task, schedule))
        if item.key not in keys:
            found.setdefault(item.key, item)
        if len(found) == count:
            break
    return list(found.values())


def turned(task: Task, schedule: Schedule, rng: random.Random) -> Schedule | None:
    """The schedule with one stage changed; None where the knobs do not fit each other."""
    k = rng.choice([k for k, stage in enumerate(schedule) if stage.form != TORCH])
    stage = schedule[k]
    if rng.random() < 0.15:
        stage = draw_stage(task, stage.first, stage.last, rng.choice(forms(task, stage.first, stage.last)), rng)
    else:
        for _ in range(rng.choice((1, 1, 2))):
            knob, values = rng.choice(list(knobs_of(task, stage.form).items()))
            stage = stage.turned(knob, rng.choice(values))
    return (*schedule[:k], stage, *schedule[k + 1 :]) if sound(task, stage) else None


def speedup(ledger: Ledger, item: Item) -> float:
    """The speedup of a judged point; 0 for one that is not correct or not judged."""
    row = ledger.rows.get(item.key)
    return float(row["speedup"]) if row is not None and row["status"] == "correct" else 0.0


async def search(tasks: Sequence[Task], pool: Pool, ledger: Ledger, *, until: float, tf32: bool) -> dict[str, list[Item]] | None:
    """Judge the points of every task; None where the time ran out."""
    points = {task.name: drawn(task, DRAWN, tf32=tf32) for task in tasks}
    if not await judge([item for found in points.values() for item in found], pool, ledger, until=until):
        return None
    for number in range(ROUNDS):
        new = {task.name: neighbours(task, points[task.name], ledger, NEIGHBOURS, number, tf32=tf32) for task in tasks}
        if not await judge([item for found in new.values() for item in found], pool, ledger, until=until):
            return None
        points = {name: found + new[name] for name, found in points.items()}
    return points


def row_of(points: Sequence[Item], ledger: Ledger) -> dict[str, object]:
    """The row of a problem in the table."""
    best = max(points, key=lambda item: speedup(ledger, item))
    stages = [[stage.first, stage.last, stage.form, dict(stage.knobs)] for stage in best.draft.schedule]
    correct = sum(speedup(ledger, item) > 0 for item in points)
    return {"speedup": round(speedup(ledger, best), 3), "points": len(points), "correct": correct, "schedule": stages}


@dataclass(frozen=True)
class Flags:
    """Search for the oracle of each validation problem."""

    families: tuple[str, ...] = ()
    """Families of problems; without it, all."""
    training: bool = False
    """Search for the training problems instead."""
    exact: bool = False
    """No product rounds to tf32."""
    device: str = "auto"
    """What judges: auto, cpu (modelled time), cuda or cuda:N."""
    out: Path = TABLE
    """The table, whose other rows stay."""
    limit_seconds: float | None = None
    """Stop after so many seconds with exit status 75."""


async def run(flags: Flags) -> int:
    """Search, and store what was found; the exit status."""
    until = deadline(flags.limit_seconds)
    tasks = (training_tasks if flags.training else validation_tasks)(families_of(flags.families))
    async with open_pool(device=flags.device, cache_dir=RUNS / "evaluations") as pool:
        timing = timing_of(pool)
        card = card_of(pool)
        ledger = open_ledger("oracle", pool)
        points = await search(tasks, pool, ledger, until=until, tf32=not flags.exact)
    if points is None:
        print(f"{len(ledger.rows)} points judged; the same command goes on", file=sys.stderr)
        return GOES_ON
    rows = {name: row_of(found, ledger) for name, found in points.items()}
    known = {name: row for name, row in rows.items() if float(str(row["speedup"])) > 0}
    store(card, timing, known, flags.out)
    for name, row in known.items():
        print(f"{name:72} {row['speedup']:6.2f}x of {row['points']} points, {row['correct']} correct")
    print(f"{len(known)} problems, {timing} on {card}")
    return 0


def main(argv: Sequence[str]) -> int:
    """The command."""
    return exit_status(lambda: anyio.run(run, parse_flags(Flags(), list(argv), "python -m experiments.world.oracle")))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
