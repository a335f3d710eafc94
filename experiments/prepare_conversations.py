"""Keep the good conversations of benchmarks and runs as a table that `experiments.cold_start --data` trains on.

    python -m experiments.prepare_conversations runs/benchmark/Qwen3-8B-* --out data/kept.parquet --speedup 1.2 --turns 3..5
    python -m experiments.cold_start --model Qwen/Qwen3-8B --data data/kept.parquet

Both together are rejection-sampling fine-tuning. A source is the directory of a benchmark or of a run. Each trajectory gives
at most one conversation, which ends with its fastest turn that is good enough. What a run, our suite or the world validates on is
left out.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from experiments.preparation.choice import Choice, choose
from experiments.preparation.exchanges import trajectories_of
from experiments.preparation.table import write_table
from rlkernel.commands.flags import parse_flags
from rlkernel.errors import UsageError, exit_status


@dataclass(frozen=True)
class Flags:
    """Keep good conversations: `python -m experiments.prepare_conversations DIRECTORY ... --out FILE.parquet`."""

    source: tuple[Path, ...] = ()
    """Directories of benchmarks or of runs."""
    out: Path | None = None
    """The table that is written, FILE.parquet."""
    keep: Literal["correct", "any"] = "correct"
    """What the last turn of a conversation must be. any: whatever it is, also a hack."""
    speedup: float = 0.0
    """The least speedup of a correct last turn."""
    coverage: float = 0.0
    """The least coverage of a correct last turn."""
    turns: str = "1.."
    """How many turns a conversation has: 3, 3..5 or 3.. ."""
    most: int = 0
    """The most conversations of one problem, the fastest; 0: all."""


def run(flags: Flags) -> int:
    """Write the table, and say what was kept. Raises UsageError."""
    if not flags.source or flags.out is None or flags.out.suffix != ".parquet":
        raise UsageError("give at least one DIRECTORY and --out FILE.parquet")
    if flags.most < 0:
        raise UsageError(f"--most {flags.most}: use 0 for all, or a positive number")
    if flags.keep == "any" and (flags.speedup or flags.coverage):
        raise UsageError("--speedup and --coverage are of correct turns: leave them or --keep any out")
    choice = Choice(flags.keep == "correct", flags.speedup, flags.coverage, parse_turns(flags.turns), flags.most)
    kept = choose((told for place in flags.source for told in trajectories_of(place)), choice)
    causes = "; ".join(f"{cause}: {count:,}" for cause, count in kept.causes.most_common())
    if not kept.rows:
        raise UsageError(f"no conversation is left ({causes or 'there are no trajectories'})")
    timings = sorted({row["timing"] for row in kept.rows if row["timing"]})
    if len(timings) > 1:
        raise UsageError(f"the sources mix {' and '.join(timings)} times, which say nothing of each other: prepare them apart")
    write_table(flags.out, kept.rows)
    total = len(kept.rows) + kept.causes.total()
    problems = len({row["problem"] for row in kept.rows})
    more = f"; {causes}" if causes else ""
    print(f"{flags.out}: {len(kept.rows):,} of {total:,} trajectories, of {problems:,} problems{more}")
    return 0


def parse_turns(text: str) -> tuple[int, int]:
    """Read the value of --turns. Raises UsageError.

    >>> parse_turns("3"), parse_turns("3..5"), parse_turns("2..")[0]
    ((3, 3), (3, 5), 2)
    """
    low, dots, high = text.partition("..")
    try:
        found = (int(low), int(high) if high else 1 << 30 if dots else int(low))
    except ValueError:
        found = (0, 0)
    if not 1 <= found[0] <= found[1]:
        raise UsageError(f"--turns {text}: write 3, 3..5 or 3..")
    return found


def main(argv: Sequence[str]) -> int:
    """The command. Exit status: 0, 2 for unusable arguments (one line), 130 when interrupted."""
    return exit_status(partial(_main, list(argv)))


def _main(argv: list[str]) -> int:
    return run(parse_flags(Flags(), argv, "python -m experiments.prepare_conversations", "source"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
