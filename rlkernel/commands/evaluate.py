"""`rlkernel evaluate` of one pair, and what it shares with `manifest`: files, problems, and results as JSON or as text."""

from __future__ import annotations

import json
import re
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
from rlkernel.evaluator.messages.native import NativeFound
from rlkernel.evaluator.native.agreement import Judged, native_to_json
from rlkernel.evaluator.pool import Pool
from rlkernel.evaluator.processes.words import MOST, Words
from rlkernel.sources.load import load
from rlkernel.training.placement import open_any_pool
from rlkernel.types import Closeness, Evaluation, Problem

CLOSE = {
    Closeness.TIGHT: "[dim]by KernelBench's rule: close, within 1e-4",
    Closeness.LOOSE: "[dim]by KernelBench's rule: close within 1e-2, not within 1e-4",
    Closeness.NO: "[dim]by KernelBench's rule: not close",
}
"""What people are told of `Evaluation.kernelbench_close`."""


def read_file(path: Path, what: str) -> str:
    """The text of a file. Raises UsageError that names the file, and `what` is wanted."""
    try:
        return path.read_text()
    except FileNotFoundError:
        raise UsageError(f"{path}: there is no such file; name the {what}") from None
    except IsADirectoryError:
        raise UsageError(f"{path}: is a directory; name the {what} itself") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from None


def references(place: str, columns: Sequence[str] = ()) -> Mapping[str, Problem] | None:
    """The problems of `--problems` by name; None without the flag. Raises UsageError."""
    if not place:
        if columns:
            raise UsageError("--column belongs to --problems SOURCE: give that too")
        return None
    loaded = load(place, columns)
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


def result_json(name: str, evaluation: Evaluation, found: NativeFound | None = None) -> dict[str, Any]:
    """The public result object of one case, with its native run if it had one."""
    native = {} if found is None else {"native": native_to_json(found)}
    return {"id": name, **evaluation.to_json(), **native}


def show(evaluation: Evaluation, console: Console) -> None:
    """Print one result for people: the verdict, and where the candidate's time goes."""
    colour = "green" if evaluation.correct else "red"
    console.print(f"[bold {colour}]{evaluation.status}[/]", end="  ")
    note = " (run natively: it could not be traced)" if evaluation.trust == "native" else ""
    console.print((evaluation.detail or "outputs match the reference") + note, markup=False, soft_wrap=True)
    if evaluation.candidate_us is not None and evaluation.reference_us is not None:
        console.print(
            f"speedup {evaluation.speedup:.2f}x  ({evaluation.reference_us:.1f} us -> {evaluation.candidate_us:.1f} us, "
            f"{evaluation.timing} time)  coverage {_percent(evaluation.coverage)}  error {evaluation.max_error:.1e}",
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
        console.print(CLOSE[evaluation.kernelbench_close], soft_wrap=True)
    if evaluation.sizes:
        console.print(f"[dim]results compared at {compared_at(evaluation.sizes)}", soft_wrap=True, highlight=False)
    seconds = evaluation.seconds
    spent = f"compile {seconds.compile:.2f} s, run {seconds.run:.2f} s, total {seconds.total:.2f} s"
    console.print(
        f"[dim]trace {seconds.trace:.2f} s, {spent}",
        soft_wrap=True,
    )


def compared_at(sizes: Mapping[str, Any]) -> str:
    """The sizes of a verdict for people. A literal of `get_inputs` has the name that `judging.sizes.resizing` gives it.

    >>> compared_at({"ROWS": 16, "SIZE_4096": 256})
    'ROWS = 16, 4096 became 256 in get_inputs'
    """
    literals = {name: name.removeprefix("SIZE_") for name in sizes if re.fullmatch(r"SIZE_\d+", name)}
    parts = (
        f"{literals[name]} became {value} in get_inputs" if name in literals else f"{name} = {value}"
        for name, value in sizes.items()
    )
    return ", ".join(parts)


def _percent(share: float | None) -> str:
    return "unknown" if share is None else f"{100 * share:.1f} %"


async def _pair(
    problem: Problem, candidate: Path, code: str, device: str, config: EvaluatorConfig, native: bool
) -> tuple[Evaluation, NativeFound | None]:
    console = Console(stderr=True)
    with UnderWay(f"evaluating {candidate.stem} against {problem.name}", console, config.limits) as under_way:
        async with open_any_pool(device=device, jobs=1, config=config) as pool, anyio.create_task_group() as tasks:
            tasks.start_soon(under_way.tell)
            words = Words()
            if isinstance(pool, Pool):
                words, pool.on_stage = pool.listen(), under_way.stage
            result = await pool.evaluate(problem, code)
            show_words(words, console)
            found = await audited(pool, problem, code, result) if native else None
            warn(pool.notices, console)
            tasks.cancel_scope.cancel()
    return result, found


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
) -> None:
    """Judge one candidate and print the result. known: problems by name, of which `reference` is one. Raises UsageError or
    BrokenReference."""
    problem, code = problem_of(str(reference), Path(), known, "reference"), read_file(candidate, "candidate")
    result, found = anyio.run(_pair, problem, candidate, code, device, config, native)
    if as_json:
        print(json.dumps(result_json(candidate.stem, result, found)))
        return
    show(result, Console())
    if found is not None:
        Console().print(told(Judged(candidate.stem, result, found)), markup=False, soft_wrap=True)
