"""Where public repositories keep candidates and references: one reader per layout, each from a clone to pairs of texts.

runs/*/level_L_problem_P_sample_S_kernel.py    KernelBench's own layout; the reference is KernelBench/levelL/P_*.py of the
                                               clone
NAME.py, or NAME/round_*.json below output/    the reference is KernelBench/level*/NAME.py of the clone
*_NAME_solution.py.txt below public/runs/      the reference is benchmarks/*/problems*/NAME/reference.py of the clone
original.py, problem.py or ref.py              KernelAgent's folders: kernels beside it or below it, most of them a function
                                               `kernel_function`
environment/reference.py                       a task's folder with solution/*.py beside it
results/level_L/NAME/code/*.py                 the rounds of a search; the reference is KernelBench/level_L/NAME.py of the
                                               clone (levels are called level1, level2, ...)
*.json                                         traces: rows with `pytorch_code` and `triton_code`, also per turn
data/TritonBench_T_v1/NAME.py                  a function and its test (`benchmarks.wild_functions`)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.wild_functions import task_of

ORIGINALS = ("original.py", "problem.py", "ref.py")
"""What a reference is called beside KernelAgent's kernels."""
KERNELS = ("kernel_code.py", "final_kernel.py", "composed_kernel.py", "input_kernel.py", "optimized*.py", "**/round_*/kernel.py")
"""What the kernels are called."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One candidate and the reference that it replaces, as texts."""

    id: str
    reference: str
    candidate: str


def pairs_of(clone: Path) -> Iterator[Pair]:
    """All pairs of a clone, by layout and then by path."""
    for layout in (_runs, _by_name, _rounds, _solutions, _artefacts, _tasks, _traces, _functions):
        yield from layout(clone)


def _runs(clone: Path) -> Iterator[Pair]:
    """The answers that stand in KernelBench's layout."""
    for path in sorted(clone.glob("runs/*/level_*_problem_*_sample_*_kernel.py")):
        numbers = re.fullmatch(r"level_(\d+)_problem_(\d+)_sample_(\d+)_kernel", path.stem)
        if numbers is None:
            continue
        level, problem, sample = numbers.groups()
        for reference in clone.glob(f"KernelBench/level{level}/{problem}_*.py"):
            yield Pair(f"{path.parent.name}/{level}-{problem}-{sample}", reference.read_text(), path.read_text())


def _by_name(clone: Path) -> Iterator[Pair]:
    """The answers that are named after KernelBench's problems, in files or in the rounds of a search."""
    references = {path.stem.rstrip("_"): path for path in sorted(clone.glob("KernelBench/level*/*.py"))}
    for path in sorted(clone.glob("output/**/*.py")):
        if (reference := references.get(path.stem.rstrip("_"))) is not None:
            yield Pair(str(path.relative_to(clone).with_suffix("")), reference.read_text(), path.read_text())
    for path in sorted(clone.glob("output/**/round_*.json")):
        found = json.loads(path.read_text())
        reference = references.get(found["metadata"]["problem_name"].rstrip("_"))
        if reference is not None:
            for place, kernel in enumerate(found["kernels"]):
                yield Pair(f"{path.relative_to(clone).with_suffix('')}/{place}", reference.read_text(), kernel["code"])


def _rounds(clone: Path) -> Iterator[Pair]:
    """The candidates of searches that keep a folder for each of KernelBench's problems."""
    for path in sorted(clone.glob("results/level*/*/code/*.py")):
        level, name = path.parts[-4], path.parts[-3]
        for reference in clone.glob(f"KernelBench/{level}/{name}.py"):
            yield Pair(f"{level}/{name}/{path.stem}", reference.read_text(), path.read_text())


def _solutions(clone: Path) -> Iterator[Pair]:
    """The solutions that agents have submitted."""
    references = {path.parent.name: path for path in sorted(clone.glob("benchmarks/*/problems*/*/reference.py"))}
    for path in sorted(clone.glob("public/runs/**/*_solution.py.txt")):
        found = re.search(r"_(\d\d_\w+)_solution\.py", path.name)
        reference = references.get(found[1]) if found else None
        if reference is not None:
            name = str(path.relative_to(clone / "public" / "runs")).removesuffix("_solution.py.txt")
            yield Pair(f"solutions/{name}", reference.read_text(), path.read_text())


def _artefacts(clone: Path) -> Iterator[Pair]:
    """The folders that hold an original with kernels beside or below it."""
    for original in sorted(path for name in ORIGINALS for path in clone.rglob(name)):
        for kernel in sorted({path for name in KERNELS for path in original.parent.glob(name)}):
            yield Pair(str(kernel.relative_to(clone).with_suffix("")), original.read_text(), kernel.read_text())


def _tasks(clone: Path) -> Iterator[Pair]:
    """The folders of tasks with a solution of their author's."""
    for reference in sorted(clone.rglob("environment/reference.py")):
        for solution in sorted(reference.parents[1].glob("solution/*.py")):
            yield Pair(f"tasks/{reference.parents[1].name}", reference.read_text(), solution.read_text())


def _traces(clone: Path) -> Iterator[Pair]:
    """Every attempt in lists of conversations; a file that is cut short gives its whole rows."""
    for path in sorted(clone.glob("*.json")):
        for place, row in enumerate(_rows(path.read_text())):
            reference = row.get("pytorch_code")
            attempts = [row, *row.get("turns", [])] if isinstance(reference, str) else []
            for number, attempt in enumerate(attempts):
                if isinstance(attempt, dict) and isinstance(attempt.get("triton_code"), str):
                    yield Pair(f"{path.stem}/{place}-{row.get('sample_key')}-{number}", str(reference), attempt["triton_code"])


def _rows(text: str) -> Iterator[dict[str, Any]]:
    decoder, at = json.JSONDecoder(), text.find("{")
    while at >= 0 and text.lstrip().startswith("["):
        try:
            row, end = decoder.raw_decode(text, at)
        except ValueError:
            return
        if isinstance(row, dict):
            yield row
        at = text.find("{", end)


def _functions(clone: Path) -> Iterator[Pair]:
    """The answers to tasks that are functions: rows with `predict`, each for the task whose function it defines."""
    tasks = [task for path in sorted(clone.glob("data/TritonBench_T_v1/*.py")) if (task := task_of(path.read_text()))]
    for path in sorted(clone.glob("LLM_generated/Bench_T*/*.jsonl")):
        for place, answer in enumerate(_answers(path.read_text().splitlines())):
            for task in tasks:
                if (candidate := task.candidate(answer)) is not None:
                    yield Pair(f"{path.stem}/{place}-{task.function}", task.reference, candidate)


def _answers(lines: Iterable[str]) -> Iterator[str]:
    """The code of each row, without the fence around it."""
    for line in lines:
        answer = str(json.loads(line).get("predict", ""))
        fenced = re.search(r"```(?:python)?\n(.*?)```", answer, re.DOTALL)
        yield fenced[1] if fenced else answer
