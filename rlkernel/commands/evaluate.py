"""`rlkernel evaluate` of one pair, and what it shares with `manifest`: files, problems, and results as JSON or as text."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
from rich.console import Console
from rich.table import Table

from rlkernel.commands.native import audited, told
from rlkernel.commands.under_way import UnderWay
from rlkernel.errors import UsageError
from rlkernel.evaluator.config import EvaluatorConfig
from rlkernel.evaluator.devices import profile_of
from rlkernel.evaluator.judging.noted import noting
from rlkernel.evaluator.judging.undecided import compared_at
from rlkernel.evaluator.messages.native import NativeFound
from rlkernel.evaluator.native.agreement import Judged, native_to_json
from rlkernel.evaluator.pool import Pool
from rlkernel.evaluator.processes.words import MOST, Words
from rlkernel.metrics import LAZY_COVERAGE, is_lazy
from rlkernel.sources.load import load
from rlkernel.training.placement import open_any_pool
from rlkernel.types import Closeness, Evaluation, Problem, Timing

MINOR_COVERAGE = 0.5
"""The share of the time from which on kernels do most of the work."""
CLOSE = {
    Closeness.TIGHT: "by KernelBench's rule: close, within 1e-4",
    Closeness.LOOSE: "by KernelBench's rule: close within 1e-2, not within 1e-4",
    Closeness.NO: "by KernelBench's rule: not close",
}
"""What people are told of `Evaluation.kernelbench_close`."""
ACCEPTED = {
    Closeness.TIGHT: "KernelBench would accept these outputs, which are within 1e-4",
    Closeness.LOOSE: "KernelBench would accept these outputs where it allows 1e-2, and not where it allows 1e-4",
}
"""The same of a candidate that is not correct: it is no praise."""


def read_file(path: Path, what: str) -> str:
    """The text of a file. Raises UsageError that names the file, and `what` is wanted."""
    try:
        return path.read_text()
    except FileNotFoundError:
        raise UsageError(f"{path}: there is no such file; name the {what}") from None
    except IsADirectoryError:
        raise UsageError(f"{path}: is a directory; name the {what} itself") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {error}; name a text file, the {what}") from None


def references(place: str, columns: Sequence[str] = ()) -> Mapping[str, Problem] | None:
    """The problems of `--problems` by name; None without the flag. Raises UsageError."""
    if not place:
        if columns:
            raise UsageError("--column belongs to --problems SOURCE: give that too")
        return None
    loaded = load(place, columns, flag="--problems")
    if loaded.left_out:
        print("\n".join(loaded.lines()), file=sys.stderr)
    return {problem.name: problem for problem in loaded.problems}


def problem_of(reference: str, base: Path, known: Mapping[str, Problem] | None, what: str) -> Problem:
    """The problem of that file, or of that name where names are known. Raises UsageError."""
    if known is None:
        return Problem(reference, 0, "validation", read_file(base / reference, what))
    if reference not in known:
        raise UsageError(f"{reference}: no problem of --problems has this name; names look like {next(iter(known))}")
    return known[reference]


def result_json(
    name: str, evaluation: Evaluation, found: NativeFound | None = None, remarks: Sequence[str] = ()
) -> dict[str, Any]:
    """The public result object of one case, with its native run if it had one, and remarks if there are any."""
    native = {} if found is None else {"native": native_to_json(found)}
    return {"id": name, **evaluation.to_json(), **native, **({"remarks": list(remarks)} if remarks else {})}


def show(evaluation: Evaluation, console: Console, profile: str, place: str = "") -> None:
    """Print one result for people: the verdict, and where the candidate's time goes. profile: the GPU that is modelled where
    there is none. place: where values differ."""
    colour = "green" if evaluation.correct else "red"
    console.print(f"[bold {colour}]{evaluation.status}[/]", end="  ")
    note = " (run natively: it could not be traced)" if evaluation.trust == "native" else ""
    if is_lazy(evaluation):
        note += f"; lazy: its kernels take {_percent(evaluation.coverage)} of the time, less than {100 * LAZY_COVERAGE:.0f} %"
    elif evaluation.correct and evaluation.coverage is not None and evaluation.coverage < MINOR_COVERAGE:
        note += f"; its kernels take {_percent(evaluation.coverage)} of the time, torch's operators the rest"
    console.print((evaluation.detail or "outputs match the reference") + note, markup=False, soft_wrap=True)
    if place:
        console.print(place, soft_wrap=True, markup=False, highlight=False)
    if evaluation.candidate_us is not None and evaluation.reference_us is not None:
        console.print(
            f"speedup {evaluation.speedup:.2f}x  ({evaluation.reference_us:.1f} us -> {evaluation.candidate_us:.1f} us, "
            f"{timed(evaluation.timing, profile)})  coverage {_percent(evaluation.coverage)}  error {evaluation.max_error:.1e}",
            soft_wrap=True,
        )
        if evaluation.timing == "measured" and evaluation.trust == "traced":
            second = "" if evaluation.compiled_us is None else f", reference under torch.compile {evaluation.compiled_us:.1f} us"
            console.print(
                f"[dim]95 % interval {evaluation.speedup_low:.3f} to {evaluation.speedup_high:.3f}, {evaluation.trials} trials, "
                f"host {evaluation.host_us:.0f} us to launch{second}",
                soft_wrap=True,
            )
        table = Table(box=None, pad_edge=False)
        for name, justify in (("step", "left"), ("calls", "right"), ("us", "right"), ("share", "right"), ("", "left")):
            table.add_column(name, justify=justify)  # type: ignore[arg-type]
        for launch in evaluation.launches:
            note = f"{launch.registers} registers, {launch.spills} B spilled" if launch.live else "result unused"
            table.add_row(f"triton {launch.kernel}", str(launch.calls), f"{launch.us:.1f}", f"{100 * launch.share:.1f} %", note)
        for op in evaluation.ops:
            table.add_row(op.op, str(op.calls), f"{op.us:.1f}", f"{100 * op.share:.1f} %", "")
        if evaluation.trust == "traced":
            console.print(table)
    if evaluation.kernelbench_close is not None:
        words = CLOSE if evaluation.correct else {**CLOSE, **ACCEPTED}
        console.print(f"[dim]{words[evaluation.kernelbench_close]}", soft_wrap=True)
    if evaluation.sizes:
        # Without outputs that match or do not, nothing was compared.
        said = "judged" if evaluation.matches is None else "results compared"
        console.print(f"[dim]{said} at {compared_at(evaluation.sizes)}", soft_wrap=True, highlight=False)
    seconds = evaluation.seconds
    spent = f"compile {seconds.compile:.2f} s, run {seconds.run:.2f} s, total {seconds.total:.2f} s"
    console.print(
        f"[dim]trace {seconds.trace:.2f} s, {spent}",
        soft_wrap=True,
    )


def timed(timing: Timing | None, profile: str) -> str:
    """How times were had; modelled ones with the GPU that they are modelled for.

    >>> timed("modelled", "h200"), timed("measured", "h200")
    ('modelled for h200', 'measured time')
    """
    return f"modelled for {profile_of(profile).name}" if timing == "modelled" else f"{timing} time"


def _percent(share: float | None) -> str:
    return "unknown" if share is None else f"{100 * share:.1f} %"


async def _pair(
    problem: Problem, candidate: Path, code: str, device: str, config: EvaluatorConfig, native: bool
) -> tuple[Evaluation, NativeFound | None, str, list[str]]:
    console = Console(stderr=True)
    with UnderWay(f"evaluating {candidate.stem} against {problem.name}", console, config.limits) as under_way:
        async with open_any_pool(device=device, jobs=1, config=config) as pool, anyio.create_task_group() as tasks:
            tasks.start_soon(under_way.tell)
            words, places = Words(), dict[str, str]()
            if isinstance(pool, Pool):
                words, places, pool.on_stage = pool.listen(), pool.places(), under_way.stage
            with noting() as noted:
                result = await pool.evaluate(problem, code)
            show_words(words, console)
            found = await audited(pool, problem, code, result) if native else None
            remarks: list[str] = []
            if isinstance(pool, Pool):
                remarks = pool.remarks(problem, result, noted) + (await pool.doubts(problem) if result.correct else [])
            warn((*pool.notices, *remarks), console)
            tasks.cancel_scope.cancel()
    place = next((where for what, where in places.items() if result.detail.startswith(what)), "")
    return result, found, place, remarks


def show_words(words: Words, console: Console) -> None:
    """Print what a candidate has printed, each line marked as its own words, and nothing for a silent one."""
    if not words.text.strip():
        return
    most = f"; the last {MOST:,} characters" if words.cut else ""
    lines = "\n".join(f"  | {line}".rstrip() for line in words.text.strip("\n").split("\n"))
    why = "its own words, on which no verdict rests; it was traced several times, at several sizes"
    console.print(f"the candidate printed ({why}{most}):\n{lines}", soft_wrap=True, markup=False, highlight=False)


def warn(notices: Sequence[str], console: Console) -> None:
    """Print what a pool has noticed, as one line each."""
    for notice in notices:
        console.print(f"warning: {notice}", soft_wrap=True, markup=False, highlight=False)


def evaluate_pair(
    reference: Path,
    candidate: Path,
    *,
    device: str,
    config: EvaluatorConfig,
    as_json: bool,
    native: bool = False,
    known: Mapping[str, Problem] | None = None,
) -> Evaluation:
    """Judge one candidate, print the result and return it. known: problems by name, of which `reference` is one. Raises
    UsageError or BrokenReference."""
    problem, code = problem_of(str(reference), Path(), known, "reference"), read_file(candidate, "candidate")
    result, found, place, remarks = anyio.run(_pair, problem, candidate, code, device, config, native)
    if as_json:
        print(json.dumps(result_json(candidate.stem, result, found, remarks)))
        return result
    show(result, Console(), config.profile, place)
    if found is not None:
        Console().print(told(Judged(candidate.stem, result, found)), markup=False, soft_wrap=True)
    return result
