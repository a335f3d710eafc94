"""Look at every reference of a source once, keep the sound ones, and write them as one table that `--problems` takes.

    python -m experiments.prepare_problems hkust-nlp/drkernel-rl-data --out data/rl.parquet --against KernelBench
    python -m experiments.prepare_problems problems.jsonl --out data/mine.parquet --column reference=code --min-us 10

Each reference runs in a locked process of its own. It is traced, its time is modelled, and, where a CPU can, its values are
looked at: constant outputs, inputs and parameters that do not matter. A problem that equals one of `--against` up to names,
constants and sizes is named and left out. Beside FILE.parquet lie FILE.md, a page of statistics, and FILE.jsonl, what was found:
the same command goes on where it was stopped, and other filters cost seconds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import anyio
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from experiments.preparation.filters import Filters, Verdict, forms_of, judge_all
from experiments.preparation.looked import Ledger, look_at, with_forms
from experiments.preparation.page import page
from experiments.preparation.table import write_table
from rlkernel.commands.flags import parse_flags
from rlkernel.errors import UsageError, exit_status
from rlkernel.evaluator.config import EvaluatorConfig
from rlkernel.evaluator.messages.survey import Survey
from rlkernel.sources.load import load

VERSION = 1
"""The column `prepared` of the tables that are written."""


@dataclass(frozen=True)
class Flags:
    """Prepare problems: `python -m experiments.prepare_problems SOURCE --out FILE.parquet`."""

    source: tuple[str, ...] = ()
    """A directory, a .parquet or .jsonl file, or owner/name[:split][@revision] on the hub."""
    out: Path | None = None
    """The table that is written, FILE.parquet."""
    column: tuple[str, ...] = ()
    """Columns of a table of your own, e.g. reference=code name=id."""
    against: str = ""
    """A source whose problems must not be trained on, e.g. KernelBench."""
    min_us: float = 0.0
    """The least time of a reference that is kept, in microseconds."""
    max_us: float = float("inf")
    """The largest time of a reference that is kept."""
    levels: tuple[int, ...] = ()
    """The levels that are kept; without it, all."""
    operators: tuple[str, ...] = ()
    """Keep what has one of these operators, e.g. aten.mm."""
    without: tuple[str, ...] = ()
    """Leave out what has one of these operators."""
    degenerate: bool = False
    """Also keep problems that can be solved without doing the work."""
    deterministic: bool = False
    """Leave out problems whose reference draws numbers, as dropout does."""
    jobs: int = 0
    """References that run at a time; 0: one per core."""
    profile: str = "h200"
    """The GPU whose time is modelled, such as h200, h100, a100, l40s, b200 or rtx4090."""
    seconds: int = 30
    """The seconds that one reference may take."""


def run(flags: Flags) -> int:
    """Prepare, and say what was kept. Raises UsageError."""
    if len(flags.source) != 1 or flags.out is None or flags.out.suffix != ".parquet":
        raise UsageError("give one SOURCE and --out FILE.parquet")
    if flags.jobs < 0:
        raise UsageError(f"--jobs {flags.jobs}: use 0 for one per core, or a positive number")
    if flags.seconds < 1:
        raise UsageError(f"--seconds {flags.seconds}: at least 1")
    loaded = load(flags.source[0], flags.column)
    held_out = load(flags.against, flag="--against").problems if flags.against else ()
    console = Console(stderr=True)
    for line in loaded.lines():
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    config = _config(flags)
    ledger = Ledger(flags.out.with_suffix(".jsonl"), config)
    with _progress(len(held_out) + len(loaded.problems), console) as on_done:
        anyio.run(look_at, (*held_out, *loaded.problems), ledger, config, flags.jobs, on_done)
    same = ("min_us", "max_us", "levels", "operators", "without", "degenerate", "deterministic")
    filters = Filters(**{name: getattr(flags, name) for name in same})
    verdicts = judge_all(with_forms(loaded.problems, ledger), filters, forms_of(with_forms(held_out, ledger)))
    kept = [verdict for verdict in verdicts if not verdict.cause]
    text = page(str(flags.out.stem), verdicts, loaded.left_out, f"modelled for {flags.profile}")
    statistics = flags.out.with_suffix(".md")
    statistics.write_text(text, encoding="utf-8")
    if not kept:
        raise UsageError(f"{flags.source[0]}: no problem is left; {statistics} says why")
    write(flags.out, kept, flags.profile)
    print(f"{flags.out}: {len(kept):,} of {len(verdicts) + len(loaded.left_out):,} rows; {statistics} says more")
    return 0


def _config(flags: Flags) -> EvaluatorConfig:
    try:
        config = EvaluatorConfig(profile=flags.profile)
    except ValueError as error:
        raise UsageError(f"--profile: {error}") from error
    return replace(config, limits=replace(config.limits, survey_seconds=flags.seconds))


def write(path: Path, kept: Sequence[Verdict], profile: str) -> None:
    """Write the table whole or not at all."""
    rows = [
        {
            "name": one.looked.problem.name,
            "level": one.looked.problem.level,
            "split": one.looked.problem.split,
            "reference": one.looked.problem.source,
            "prompt": one.looked.problem.prompt,
            "prepared": VERSION,
            "reference_us": one.looked.survey.reference_us,
            "timing": f"modelled for {profile}",
            "operators": [fact.op for fact in one.looked.survey.ops],
            "random": one.looked.survey.random,
            "degenerate": one.looked.survey.degenerate,
            "checked": one.looked.survey.checked,
            "form": one.looked.survey.form,
        }
        for one in kept
    ]
    write_table(path, rows)


@contextmanager
def _progress(total: int, console: Console) -> Iterator[Callable[[Survey], None]]:
    """Show a bar. Yields the function to call with every survey."""
    broken = done = 0
    columns = (
        TextColumn("references"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, TextColumn("{task.fields[note]}"), console=console) as bar:
        task = bar.add_task("", total=total, note="")

        def on_done(survey: Survey) -> None:
            nonlocal broken, done
            done, broken = done + 1, broken + bool(survey.broken)
            bar.update(task, completed=done, note=f"{broken:,} broken" if broken else "")

        yield on_done


def main(argv: Sequence[str]) -> int:
    """The command. Exit status: 0, 2 for unusable arguments (one line), 130 when interrupted."""
    return exit_status(partial(_main, list(argv)))


def _main(argv: list[str]) -> int:
    return run(parse_flags(Flags(), argv, "python -m experiments.prepare_problems", "source"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
