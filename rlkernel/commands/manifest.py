"""`rlkernel evaluate --manifest`: many pairs to results as JSON lines; an interrupted command goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from rlkernel.commands.evaluate import problem_of, read_file, result_json, warn
from rlkernel.commands.native import audited, judged_rows
from rlkernel.errors import BrokenReference, EvaluatorFailed, UsageError
from rlkernel.evaluator.config import EvaluatorConfig
from rlkernel.evaluator.judging.noted import noting
from rlkernel.evaluator.judging.undecided import is_undecided
from rlkernel.evaluator.native.agreement import summary, summary_line
from rlkernel.evaluator.pool import Pool
from rlkernel.training.placement import open_any_pool
from rlkernel.types import Problem


@dataclass(frozen=True, slots=True)
class Case:
    """One line of a manifest."""

    id: str
    problem: Problem
    candidate: str


def _case(data: Any, base: Path, where: str, known: Mapping[str, Problem] | None) -> Case:
    if not isinstance(data, dict):
        raise UsageError(f'{where}: not an object; write {{"id": ..., "reference": ..., "candidate": ...}}')
    for name in ("id", "reference", "candidate"):
        if not isinstance(data.get(name), str):
            raise UsageError(f"{where}: field {name!r} is missing or not a string")
    problem = problem_of(data["reference"], base, known, f"reference of {where}")
    return Case(data["id"], problem, read_file(base / data["candidate"], f"candidate of {where}"))


def read_manifest(path: Path, known: Mapping[str, Problem] | None = None) -> list[Case]:
    """The cases of a manifest. known: problems by the names that its references are. Raises UsageError naming the file and the
    line."""
    cases: list[Case] = []
    seen: set[str] = set()
    for number, line in enumerate(read_file(path, "manifest").splitlines(), 1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
        except ValueError as error:
            raise UsageError(f"{path}, line {number}: not JSON: {error}") from None
        case = _case(data, path.parent, f"{path}, line {number}", known)
        if case.id in seen:
            raise UsageError(f"{path}, line {number}: id {case.id!r} stands on an earlier line; ids must differ")
        seen.add(case.id)
        cases.append(case)
    if not cases:
        raise UsageError(f"{path}: no cases; write one JSON object per line")
    return cases


def finished_ids(out: Path) -> set[str]:
    """The ids of cases that an earlier, interrupted run has already written. A torn last line is dropped."""
    return set(_finished(out))


def _finished(out: Path) -> dict[str, dict[str, Any]]:
    """What an earlier run has written of each case, by its id. A torn last line is dropped."""
    if not out.exists():
        return {}
    done: dict[str, dict[str, Any]] = {}
    for line in out.read_text().splitlines():
        try:
            row = json.loads(line)
            done[str(row["id"])] = row
        except (ValueError, KeyError, TypeError):
            continue
    _write(out, done.values())
    return done


def _write(out: Path, rows: Iterable[dict[str, Any]]) -> None:
    out.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _asked(case: Case, config: EvaluatorConfig, native: bool) -> dict[str, Any]:
    """What a line of results is of: a digest of both texts, and the settings. An evaluation has these, too, on a line."""
    texts = hashlib.sha256(json.dumps([case.problem.source, case.candidate]).encode()).hexdigest()[:16]
    settings = {name: getattr(config, name) for name in ("profile", "precision", "compiled", "untraceable")}
    return {"texts": texts, "settings": {**settings, "native": native}}


def _without_changed(out: Path, cases: Sequence[Case], config: EvaluatorConfig, native: bool) -> tuple[set[str], int]:
    """The ids of cases whose results stand, and how many others had another text when they were judged: their lines go. Raises
    UsageError for a case that was judged with other settings. Lines that do not say of what they are stand."""
    rows, changed = _finished(out), 0
    for case in cases:
        now, row = _asked(case, config, native), rows.get(case.id, {})
        for name, value in now["settings"].items():
            before = row.get("settings", now["settings"]).get(name, value)
            if before != value:
                raise UsageError(
                    f"--out {out}: the line of {case.id!r} was judged with {name} {before}, and {value} is asked for; name "
                    "another file"
                )
        if row.get("texts", now["texts"]) != now["texts"]:
            del rows[case.id]
            changed += 1
    if changed:
        _write(out, rows.values())
    return set(rows), changed


async def _judge(
    cases: list[Case], out: Path, device: str, jobs: int, config: EvaluatorConfig, console: Console, native: bool
) -> dict[str, list[str]]:
    """Judge these cases and append their results to `out`. Gives the cases that could not be judged, by the reason."""
    columns = (
        TextColumn("evaluating"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[correct]} correct"),
    )
    correct = 0
    broken: dict[str, list[str]] = {}
    with out.open("a") as file, Progress(*columns, console=console) as progress:
        bar = progress.add_task("", total=len(cases), correct=0)

        async def one(case: Case) -> None:
            nonlocal correct
            try:
                with noting() as noted:
                    result = await pool.evaluate(case.problem, case.candidate)
                found = await audited(pool, case.problem, case.candidate, result) if native else None
            except (BrokenReference, EvaluatorFailed) as error:
                broken.setdefault(str(error), []).append(case.id)
            else:
                remarks = pool.remarks(case.problem, result, noted) if isinstance(pool, Pool) else []
                file.write(json.dumps({**result_json(case.id, result, found, remarks), **_asked(case, config, native)}) + "\n")
                file.flush()
                correct += result.correct
            progress.update(bar, advance=1, correct=correct)

        async with open_any_pool(device=device, jobs=jobs, config=config) as pool:
            at_start = pool.notices
            warn(at_start, console)
            async with anyio.create_task_group() as tasks:
                for case in cases:
                    tasks.start_soon(one, case)
            warn(pool.notices[len(at_start) :], console)
    return broken


def results_of(cases: Sequence[Case], out: Path) -> list[dict[str, Any]]:
    """The lines of the cases in a results file. Raises UsageError where one has no status."""
    wanted = {case.id for case in cases}
    found = [row for row in map(json.loads, out.read_text().splitlines()) if row["id"] in wanted]
    for row in found:
        if not isinstance(row.get("status"), str):
            raise UsageError(f"--out {out}: the line of {row['id']!r} has no status, so it is no result; name another file")
    return found


def undecided_cases(rows: Iterable[Mapping[str, Any]]) -> int:
    """How many of these lines are `correct` as far as they could be judged: longer sizes could not."""
    return sum(row["status"] == "correct" and is_undecided(row.get("detail", "")) for row in rows)


def status_table(counts: Mapping[str, int]) -> Table:
    """How many cases have each status, the most frequent one first."""
    table = Table(box=None, pad_edge=False)
    table.add_column("status", no_wrap=True)
    table.add_column("cases", justify="right", no_wrap=True)
    for status, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        table.add_row(status, str(count))
    return table


def _conclude(cases: Sequence[Case], out: Path, broken: Mapping[str, list[str]], console: Console) -> None:
    """Print why cases were not judged, how many of the manifest's cases have each status, and where the results are. Raises
    UsageError if cases were not judged."""
    for why, ids in broken.items():
        more = f" and {len(ids) - 1} more" if len(ids) > 1 else ""
        console.print(f"not judged: {ids[0]}{more}: {why}", soft_wrap=True, markup=False, highlight=False)
    rows = results_of(cases, out)
    counts = Counter(row["status"] for row in rows)
    if count := sum(map(len, broken.values())):
        counts["not judged"] = count
    console.print(status_table(counts))
    if some := undecided_cases(rows):
        console.print(f"{some} of the correct: what is longer could not be judged, see their `detail`", highlight=False)
    if some := sum("remarks" in row for row in rows):
        console.print(f"{some} with `remarks`: what nobody has looked at, and what would decide it", highlight=False)
    console.print(f"results: {out}", soft_wrap=True, markup=False, highlight=False)
    if count:
        raise UsageError(f"{count} of {len(cases)} cases could not be judged; the lines above say why")


def evaluate_manifest(
    manifest: Path,
    out: Path,
    *,
    device: str,
    jobs: int,
    config: EvaluatorConfig,
    native: bool = False,
    known: Mapping[str, Problem] | None = None,
) -> None:
    """Evaluate what `out` does not hold yet of these texts, so that an interrupted run goes on. Raises UsageError."""
    cases = read_manifest(manifest, known)
    if not out.parent.is_dir():
        raise UsageError(f"--out {out}: its directory does not exist; make it first")
    done, changed = _without_changed(out, cases, config, native)
    console = Console(stderr=True)
    if changed:
        console.print(f"{out}: judged again, because their texts are others now: {changed} of {len(cases)} cases", soft_wrap=True)
    todo = [case for case in cases if case.id not in done]
    if done:
        results_of(cases, out)
        console.print(f"{out}: {len(cases) - len(todo)} of {len(cases)} cases are there already", soft_wrap=True)
    broken = anyio.run(_judge, todo, out, device, jobs, config, console, native) if todo else {}
    if native and (judged := judged_rows(out)):
        console.print(summary_line(summary(judged)), soft_wrap=True, markup=False, highlight=False)
    _conclude(cases, out, broken, console)
