"""Judge drafts of the world's teacher: every honest one must be correct, and mistakes must be seen.

    python -m experiments.world.check --count 10000 --limit-seconds 540     # honest drafts of all families
    python -m experiments.world.check --mistakes 4 --limit-seconds 540      # four drafts with each mistake and no other

Draft k of a count is the same every time, so a larger count adds to a smaller one. Exit status 1: an honest draft was not
correct, or a mistake that always does harm was never seen; 75: the time ran out, and the same command goes on.
"""

from __future__ import annotations

import random
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import anyio

from envs.world.drafts import Draft
from envs.world.draw import FAMILIES
from envs.world.mistakes import MISTAKES, applicable, slip
from envs.world.schedule import needs_tf32
from envs.world.suite import training_tasks, validation_tasks
from envs.world.teacher import Variant, schedule_of
from experiments.world.judged import RUNS, Item, Ledger, deadline, families_of, item_of, judge, open_ledger
from rlkernel.commands.flags import parse_flags
from rlkernel.errors import GOES_ON, exit_status
from rlkernel.evaluator.pool import open_pool

HONEST = (Variant.ONE, Variant.PARTIAL, Variant.FUSED, Variant.TUNED, Variant.TUNED, Variant.TUNED)
"""The variants of honest drafts; most are those whose knobs are drawn."""
TRIES = 4000
"""Schedules that are drawn in search of one where a mistake can go."""


def honest_draft(k: int, families: Sequence[str] = tuple(FAMILIES)) -> Draft:
    """Honest draft number k: families in turn, a task and a schedule at random."""
    rng = random.Random(f"honest {k}")
    family = families[k % len(families)]
    tasks = [task for task in (*training_tasks(), *validation_tasks()) if task.family == family]
    task = rng.choice(tasks)
    return Draft(task, schedule_of(task, rng.choice(HONEST), rng))


def mistaken_drafts(name: str, count: int) -> list[Draft]:
    """`count` drafts that have that mistake alone, of different tasks where there are so many."""
    rng = random.Random(f"mistake {name}")
    tasks = [*training_tasks(), *validation_tasks()]
    found: dict[str, Draft] = {}
    for _ in range(TRIES):
        task = rng.choice(tasks)
        schedule = schedule_of(task, rng.choice(HONEST), rng)
        choices = [] if needs_tf32(schedule) else applicable(task, schedule, name)
        if choices:
            draft = Draft(task, schedule, (slip(*rng.choice(choices)),))
            found.setdefault(task.name, draft)
        if len(found) == count:
            break
    return list(found.values())


def report_honest(items: Sequence[Item], ledger: Ledger) -> int:
    """Print the verdicts by family and every wrong one. Returns the number of drafts that were not correct."""
    table: dict[str, Counter[str]] = defaultdict(Counter)
    wrong = 0
    for item in items:
        row = ledger.rows[item.key]
        table[item.draft.task.family][row["status"]] += 1
        if row["status"] != "correct":
            wrong += 1
            knobs = [(stage.form, *stage.knobs) for stage in item.draft.schedule]
            print(f"{item.key}: {row['status']}: {row['detail']}\n    {knobs}")
    for family, counts in table.items():
        print(f"{family:12} {', '.join(f'{status} {count}' for status, count in counts.most_common())}")
    print(f"{len(items)} honest drafts, {wrong} not correct")
    return wrong


def report_mistakes(items: Sequence[Item], ledger: Ledger) -> int:
    """Print how often each mistake was seen. Returns the number of those that should always do harm and never did."""
    seen: dict[str, list[bool]] = defaultdict(list)
    for item in items:
        seen[item.draft.slips[0].mistake].append(ledger.rows[item.key]["status"] != "correct")
    unseen = 0
    for mistake in MISTAKES:
        found = seen[mistake.name]
        unseen += not any(found) and not mistake.sometimes
        why = f"; unseen where {mistake.sometimes}" if mistake.sometimes and not all(found) else ""
        print(f"{mistake.name:48} {sum(found)} of {len(found)} seen{why}")
    print(f"{len(MISTAKES)} mistakes; never seen though they always do harm: {unseen}")
    return unseen


@dataclass(frozen=True)
class Flags:
    """Judge drafts of the world's teacher."""

    count: int = 200
    """Honest drafts."""
    mistakes: int = 0
    """Drafts per mistake, in place of honest ones."""
    families: tuple[str, ...] = ()
    """Families of problems; without it, all."""
    device: str = "auto"
    """What judges: auto, cpu (the interpreter, modelled time), cuda or cuda:N."""
    limit_seconds: float | None = None
    """Stop after so many seconds with exit status 75."""


async def run(flags: Flags) -> int:
    """Judge and report; the exit status."""
    until = deadline(flags.limit_seconds)
    if flags.mistakes:
        drafts = [(mistake.name, mistaken_drafts(mistake.name, flags.mistakes)) for mistake in MISTAKES]
        items = [item_of(draft, name) for name, found in drafts for draft in found]
    else:
        families = families_of(flags.families)
        items = [item_of(honest_draft(k, families), f"honest {k}") for k in range(flags.count)]
    async with open_pool(device=flags.device, cache_dir=RUNS / "evaluations") as pool:
        ledger = open_ledger("check", pool)
        complete = await judge(items, pool, ledger, until=until)
    judged = [item for item in items if item.key in ledger.rows]
    bad = (report_mistakes if flags.mistakes else report_honest)(judged, ledger)
    if not complete:
        print(f"{len(judged)} of {len(items)} judged; the same command goes on", file=sys.stderr)
        return GOES_ON
    return int(bad > 0)


def main(argv: Sequence[str]) -> int:
    """The command."""
    return exit_status(lambda: anyio.run(run, parse_flags(Flags(), list(argv), "python -m experiments.world.check")))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
