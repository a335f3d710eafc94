"""Kernels that other people's models wrote, collected from clones of public repositories. Nothing of them is ever committed.

    python -m benchmarks.wild_corpus --out CORPUS CLONE [CLONE ...]

A clone may hold any of these, wherever it keeps them:

    runs/*/level_L_problem_P_sample_S_kernel.py    KernelBench's own layout; the reference is KernelBench/levelL/P_*.py of the
    clone
    original.py beside kernel_code.py              KernelAgent's artefacts: a function `kernel_function`
    *.json                                         traces: rows with `pytorch_code` and `triton_code`, also per turn

A candidate that is a function gets a `ModelNew` whose forward calls it with the forward's arguments; where the function wants
more than those it is left out, and counted. CORPUS receives `manifest.jsonl`, as `rlkernel evaluate --manifest` reads it. Only
candidates with a Triton kernel are taken, each text once.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FUNCTIONS = ("kernel_function", "triton_kernel_wrapper")
"""What the functions are called that public prompts ask for instead of a module."""
MODULE = """

class ModelNew(torch.nn.Module):
    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, *args):
        return {function}(*args)
"""


@dataclass(frozen=True, slots=True)
class Pair:
    """One candidate and the reference that it replaces, as texts."""

    id: str
    reference: str
    candidate: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clones", nargs="+", type=Path)
    parser.add_argument("--out", required=True, type=Path)
    given = parser.parse_args()
    left_out: Counter[str] = Counter()
    seen: set[str] = set()
    rows = []
    for clone in given.clones:
        for pair in (*_runs(clone), *_artefacts(clone), *_traces(clone)):
            candidate = _as_module(pair)
            digest = hashlib.sha256(f"{pair.reference}\0{candidate}".encode()).hexdigest()
            if "triton.jit" not in pair.candidate:
                left_out["no Triton kernel"] += 1
            elif candidate is None:
                left_out["a function that wants more than the forward's arguments"] += 1
            elif digest in seen:
                left_out["the same text again"] += 1
            else:
                seen.add(digest)
                rows.append(_write(given.out, f"{clone.name}/{pair.id}", pair.reference, candidate))
    (given.out / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    print(f"{len(rows)} candidates in {given.out}; left out: {dict(left_out)}")


def _runs(clone: Path) -> Iterator[Pair]:
    """The answers that stand in KernelBench's layout."""
    for path in sorted(clone.glob("runs/*/level_*_problem_*_sample_*_kernel.py")):
        numbers = re.fullmatch(r"level_(\d+)_problem_(\d+)_sample_(\d+)_kernel", path.stem)
        if numbers is None:
            continue
        level, problem, sample = numbers.groups()
        for reference in clone.glob(f"KernelBench/level{level}/{problem}_*.py"):
            yield Pair(f"{path.parent.name}/{level}-{problem}-{sample}", reference.read_text(), path.read_text())


def _artefacts(clone: Path) -> Iterator[Pair]:
    """Folders with an original and a kernel beside it."""
    for original in sorted(clone.rglob("original.py")):
        for name in ("kernel_code.py", "final_kernel.py"):
            kernel = original.with_name(name)
            if kernel.exists():
                yield Pair(str(original.parent.relative_to(clone)), original.read_text(), kernel.read_text())


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


def _as_module(pair: Pair) -> str | None:
    """The candidate with a `ModelNew`; None where no module can be made of its function."""
    if "class ModelNew" in pair.candidate:
        return pair.candidate
    try:
        candidate, reference = ast.parse(pair.candidate), ast.parse(pair.reference)
    except SyntaxError:
        return None
    functions = [node for node in candidate.body if isinstance(node, ast.FunctionDef) and node.name in FUNCTIONS]
    forwards = [
        node
        for model in reference.body
        if isinstance(model, ast.ClassDef)
        for node in model.body
        if isinstance(node, ast.FunctionDef) and node.name == "forward"
    ]
    if not functions or len(forwards) != 1:
        return None
    wanted, given = functions[-1].args, forwards[0].args
    required = len(wanted.args) - len(wanted.defaults)
    if not required <= len(given.args) - 1 <= len(wanted.args):
        return None
    return pair.candidate + MODULE.format(function=functions[-1].name)


def _write(out: Path, name: str, reference: str, candidate: str) -> dict[str, str]:
    digest = hashlib.sha256(reference.encode()).hexdigest()[:12]
    paths = (out / "references" / f"{digest}.py", out / "candidates" / f"{name}.py")
    for path, text in zip(paths, (reference, candidate), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return {"id": name, "reference": str(paths[0].relative_to(out)), "candidate": str(paths[1].relative_to(out))}


if __name__ == "__main__":
    main()
