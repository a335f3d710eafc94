"""How true modelled time is, without a GPU: answers of the shipped corpus, measured on an H200 then, and modelled now.

    python -m experiments.world.modelled --count 9 --limit-seconds 540     # so many answers of each family

Prints, by family, the ratio of the modelled to the measured speedup: 1 where the model is true, 2 where it flatters a candidate
twofold. Only answers count that are right here, too, and do most of their work in Triton. Exit status 75: the time ran out, and
the same command goes on.
"""

from __future__ import annotations

import random
import re
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import anyio
import numpy as np

from envs.world.suite import of_row
from envs.world.task import Task
from experiments.cold_start.recipes import WORLD_RECIPES
from experiments.cold_start.shipped import unpack
from experiments.world.judged import RUNS, Ledger, deadline, digest, families_of, judge, kept_rows, open_ledger
from rlkernel.commands.flags import parse_flags
from rlkernel.errors import GOES_ON, exit_status
from rlkernel.evaluator.pool import open_pool

CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)
MOST = 0.5
"""The share of live Triton launches from which an answer counts: torch's own steps are modelled alike on both sides."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A right answer of the corpus."""

    task: Task
    code: str
    speedup: float
    """As measured on the H200."""

    @property
    def key(self) -> str:
        return f"{self.task.name} {digest(self.code)}"


@dataclass(frozen=True)
class Flags:
    """Compare modelled with measured speedups, on answers of the shipped corpus."""

    count: int = 9
    """Answers of each family."""
    families: tuple[str, ...] = ()
    """Families of problems; without it, all that are in the corpus."""
    seed: int = 0
    limit_seconds: float | None = None
    """Stop after so many seconds with exit status 75."""


def shipped_rows() -> list[dict[str, object]]:
    """The conversations of the corpus that comes with the project."""
    recipe, _ = WORLD_RECIPES["h200"]
    assert recipe.world is not None
    path = RUNS / f"{recipe.world.label(recipe.seed)}.jsonl"
    unpack(path)
    return kept_rows(path)


def answers(rows: Sequence[Mapping[str, object]], families: Sequence[str], count: int, seed: int) -> tuple[Answer, ...]:
    """`count` different right answers of each family, drawn from `seed`; fewer where there are fewer."""
    found: dict[str, dict[str, Answer]] = defaultdict(dict)
    for row in rows:
        task = of_row(row["task"])  # type: ignore[arg-type]
        for text, _, facts in row["exchanges"]:  # type: ignore[attr-defined]
            if facts["status"] == "correct" and (facts["coverage"] or 0.0) > MOST and (code := CODE.search(text)):
                answer = Answer(task, code[1], facts["speedup"])
                found[task.family][answer.key] = answer
    rng = random.Random(f"modelled {seed}")
    chosen = ((family, sorted(found[family])) for family in families)
    return tuple(found[family][key] for family, keys in chosen for key in rng.sample(keys, min(count, len(keys))))


def table(chosen: Sequence[Answer], ledger: Ledger) -> list[str]:
    """The ratios by family, and of all, as lines of text."""
    ratios: dict[str, list[float]] = defaultdict(list)
    for answer in chosen:
        row = ledger.rows.get(answer.key)
        if row is not None and row["status"] == "correct":
            ratios[answer.task.family].append(row["speedup"] / answer.speedup)
    lines = [f"{'modelled by measured':22}{'answers':>8}{'p10':>8}{'median':>8}{'p90':>8}"]
    for family, found in [*ratios.items(), ("all", list(chain.from_iterable(ratios.values())))]:
        spread = "".join(f"{value:8.2f}" for value in np.percentile(found, (10, 50, 90))) if found else ""
        lines.append(f"{family:22}{len(found):8}{spread}")
    return lines


async def run(flags: Flags) -> int:
    """Model and report; the exit status."""
    until = deadline(flags.limit_seconds)
    chosen = answers(shipped_rows(), families_of(flags.families), flags.count, flags.seed)
    async with open_pool(device="cpu", cache_dir=RUNS / "evaluations") as pool:
        ledger = open_ledger("modelled", pool)
        complete = await judge(chosen, pool, ledger, until=until)
    print(*table(chosen, ledger), sep="\n")
    if not complete:
        print("stopped before all were judged; the same command goes on", file=sys.stderr)
        return GOES_ON
    return 0


def main(argv: Sequence[str]) -> int:
    """The command."""
    return exit_status(lambda: anyio.run(run, parse_flags(Flags(), list(argv), "python -m experiments.world.modelled")))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
