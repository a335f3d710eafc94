"""The command line: `rlkernel evaluate`, `compare`, `doctor`, and the flags of experiments. The only file that imports tyro."""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

import tyro
from rich.console import Console
from tyro.conf import FlagCreatePairsOff, OmitSubcommandPrefixes, Positional

from rlkernel.commands import doctor as doctors
from rlkernel.commands.evaluate import evaluate_manifest, evaluate_pair
from rlkernel.errors import UsageError, exit_status
from rlkernel.evaluator.config import EvaluatorConfig
from rlkernel.training.placement import select

T = TypeVar("T")


@dataclass(frozen=True)
class Evaluate:
    """Judge a candidate against a reference: `rlkernel evaluate REFERENCE.py CANDIDATE.py`, or every line of a manifest.

    A manifest's lines are {"id", "reference", "candidate"}, with paths relative to the manifest. Exits 0 when every case got a
    verdict, whatever it is, and 2 for unusable arguments or a broken reference.
    """

    files: Positional[tuple[Path, ...]] = ()
    """REFERENCE.py CANDIDATE.py, in KernelBench's format."""
    manifest: Path | None = None
    """JSON lines to evaluate instead of one pair."""
    out: Path | None = None
    """Where a manifest's results go, one JSON object per line; what is there already is kept."""
    device: str = "auto"
    """auto: every GPU, or modelled time where there is none. cpu: modelled time. cuda: every GPU. cuda:N: that one. ray: the
    nodes of the Ray cluster of RAY_ADDRESS, or of the one that this machine is in."""
    jobs: int = 0
    """Evaluations at a time with a manifest; 0: one per core."""
    profile: str = "h200"
    """Without a GPU, the one to compile for and to model: h200 or a100."""
    tf32: bool = False
    """Allow a float32 task to use tf32 matrix units."""
    compiled: bool = False
    """Also time each reference under torch.compile, once; takes seconds, GPU only."""
    json: bool = False
    """Print one pair's result as a JSON object."""

    def __call__(self) -> int:
        try:
            config = EvaluatorConfig(profile=self.profile, tf32=self.tf32, compiled=self.compiled)
        except ValueError as error:
            raise UsageError(f"--profile: {error}") from error
        try:
            select(self.device)
        except ValueError as error:
            raise UsageError(f"--device: {error}") from error
        if self.jobs < 0:
            raise UsageError(f"--jobs {self.jobs}: use 0 for one per core, or a positive number")
        if self.manifest is not None:
            if self.files or self.out is None:
                raise UsageError("--manifest needs --out RESULTS.jsonl, and no REFERENCE.py CANDIDATE.py beside it")
            evaluate_manifest(self.manifest, self.out, device=self.device, jobs=self.jobs, config=config)
            return 0
        if len(self.files) != 2:
            raise UsageError(f"expected REFERENCE.py CANDIDATE.py or --manifest FILE --out FILE, got {len(self.files)} files")
        evaluate_pair(*self.files, device=self.device, config=config, as_json=self.json)
        return 0


@dataclass(frozen=True)
class Compare:
    """Pair runs problem by problem: `rlkernel compare RUN RUN ...`. The arm of the first run is the baseline of the others.

    Runs of one arm that differ in their seeds alone count together. Prints tables with 95 % intervals, and writes a figure.
    """

    paths: Positional[tuple[Path, ...]] = ()
    """Run directories, folders of them, or folders of reports."""
    metric: str = "fast_1.2"
    """By which problems are listed and drawn, e.g. reward, fast_1, fast_1.2, hacking_rate, lazy_rate or correct_rate."""
    step: int | None = None
    """Compare the measurements at this step; without it, each run's last one."""
    late: bool = False
    """Compare the means over the measurements in the second half of each run."""
    problems: int = 10
    """How many problems are listed, those with the largest differences; 0: none."""
    figure: Path | None = None
    """Where the figure goes; without it, compare.png in the report's folder, or in the folder that the first run is in."""
    json: bool = False
    """Print a JSON object with all problems instead of tables."""

    def __call__(self) -> int:
        # Statistics and drawing take a second to import, which the other commands need not wait for.
        from rlkernel.report import compare, compare_report
        from rlkernel.report.summary import Window

        if not self.paths:
            raise UsageError("nothing to compare: give run directories or report folders of at least two arms")
        if self.step is not None and self.late:
            raise UsageError("--step and --late exclude each other: leave one out")
        if self.problems < 0:
            raise UsageError(f"--problems {self.problems}: use 0 for none, or a positive number")
        window = Window(step=self.step) if self.step is not None else Window(share=0.5) if self.late else Window(last=1)
        pairs, timing = compare.compare_arms(self.paths, self.metric, window)
        figure = self.figure or compare.beside(self.paths[0]) / "compare.png"
        try:
            compare_report.draw_differences(pairs, timing, self.metric, figure)
        except OSError as error:
            raise UsageError(f"--figure {figure}: cannot be written ({error.strerror}): choose another place") from error
        if self.json:
            print(json.dumps(compare.to_json(pairs, timing, self.metric), indent=1))
        else:
            compare_report.show(pairs, timing, self.metric, self.problems)
            print(f"figure: {figure}")
        return 0


@dataclass(frozen=True)
class Doctor:
    """Show what this machine offers and what that means. Exits 1 when something is missing or unsafe."""

    def __call__(self) -> int:
        return 0 if doctors.show(Console()) else 1


def _one_line(text: str) -> str:
    """tyro's framed message as one line: its sections, without the title and what repeats the help."""
    sections: list[list[str]] = [[]]
    for row in text.splitlines():
        words = row.strip(" │╭╮╰╯|+")
        if not words.strip("─-") or row.startswith(("╭", "+")):
            sections.append([])
        else:
            sections[-1].append(words)
    told = [" ".join(section) for section in (sections if text.startswith(("╭", "+")) else sections[1:])]
    return "; ".join(words for words in told if words and not words.startswith(("For full helptext", "Argument helptext")))


EXPECTED = {int: "a whole number", float: "a number", tuple[int, ...]: "whole numbers"}
"""What a value that cannot be read should have been."""


def _unreadable(told: str, args: Sequence[str], classes: Sequence[type]) -> str | None:
    """Flag, value and what is expected, of tyro's complaint about a value; None for other complaints."""
    found = re.match(r"Error parsing (--[\w-]+):", told)
    if found is None:
        return None
    flag, name = found[1], found[1].removeprefix("--").replace("-", "_")
    hints = next((hints for cls in classes if name in (hints := get_type_hints(cls))), {})
    kinds = [kind for kind in (hints.get(name), *get_args(hints.get(name))) if kind in EXPECTED]
    if not kinds:
        return None
    # tyro takes `--max_tokens` as well and complains of `--max-tokens`.
    at = next((i for i, word in enumerate(args) if word.split("=")[0].replace("_", "-") == flag.replace("_", "-")), None)
    if at is None:
        return None
    end = next((i for i, word in enumerate(args) if i > at and word.startswith("--")), len(args))
    return f"{' '.join(args[at:end]).replace('=', ' ', 1)}: give {EXPECTED[kinds[0]]}"


def _tyro(call: Any, prog: str, args: Sequence[str], classes: Sequence[type]) -> Any:
    """Run a tyro parse; its complaints become a UsageError of one line. `--help` prints and exits as usual."""
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            return call()
    except SystemExit as stop:
        if stop.code in (0, None):
            raise
        told = _one_line(complaint.getvalue())
        raise UsageError(f"{_unreadable(told, args, classes) or told} (see {prog} --help)") from None


def parse_overrides(default: T, args: list[str], prog: str) -> T:
    """A frozen dataclass with the fields that `args` override. Raises UsageError with one line."""
    kind, config = type(default), (FlagCreatePairsOff,)
    parsed: T = _tyro(lambda: tyro.cli(kind, default=default, args=args, prog=prog, config=config), prog, args, [kind])
    return parsed


def _parse(args: list[str]) -> Evaluate | Compare | Doctor:
    commands: dict[str, Callable[..., Any]] = {"evaluate": Evaluate, "compare": Compare, "doctor": Doctor}
    config = (FlagCreatePairsOff, OmitSubcommandPrefixes)
    call = lambda: tyro.extras.subcommand_cli_from_dict(commands, prog="rlkernel", args=args, config=config)  # noqa: E731
    command: Evaluate | Compare | Doctor = _tyro(call, "rlkernel", args, [Evaluate, Compare, Doctor])
    return command


run = exit_status
"""What commands run in."""


def main(argv: list[str] | None = None) -> int:
    args = sys.argv[1:] if argv is None else argv
    return run(lambda: _parse(args)())


if __name__ == "__main__":
    sys.exit(main())
