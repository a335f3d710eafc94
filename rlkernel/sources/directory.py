"""Problem files in KernelBench's layout: `level1/*.py`, `level2/*.py`, ..., or files directly in a directory."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from rlkernel.errors import UsageError
from rlkernel.reference import FUNCTIONS, REQUIRED

NO_NUMBER = 1 << 62


class SuiteError(UsageError):
    """A directory or file that is no suite. The message is one line with the path and the fix."""


@dataclass(frozen=True, slots=True)
class ProblemFile:
    """One file of a directory."""

    level: int
    name: str
    """The problem's name, e.g. `level1/19_ReLU`."""
    path: Path


def problem_files(directory: Path) -> list[ProblemFile]:
    """The problem files of a directory by level, then by numeric prefix, then by name. Raises SuiteError where there are none."""
    if directory.is_file():
        raise SuiteError(f"{directory}: no table that is read here; give a .parquet or .jsonl file, or a directory of them")
    if not directory.is_dir():
        raise SuiteError(
            f"{directory}: there is no such file or directory; give a directory that holds level1/*.py or problem files"
        )
    folders = [child for child in directory.iterdir() if child.is_dir()]
    levels = [(int(found[1]), child) for child in folders if (found := re.fullmatch(r"level_?(\d+)", child.name))]
    if not levels:
        own = re.fullmatch(r"level_?(\d+)", directory.resolve().name)
        levels = [(int(own[1]) if own else 1, directory)]
    files = []
    for level, folder in sorted(levels):
        problems = [file for file in folder.glob("*.py") if not file.name.startswith(("_", "."))]
        problems.sort(key=lambda file: _number(file.stem))
        files += [ProblemFile(level, f"level{level}/{file.stem}", file) for file in problems]
    if not files:
        raise SuiteError(f"{directory}: no problems in it; expected level1/*.py, level2/*.py, ... or *.py files")
    return files


def read_reference(file: Path) -> str:
    """The text of a reference file. Raises SuiteError for one that cannot be read, or that lacks what a reference has."""
    try:
        source = file.read_text(encoding="utf-8-sig")
    except ValueError as error:
        raise SuiteError(f"{file}: not a Python file: {error}") from error
    except OSError as error:
        raise SuiteError(f"{file}: cannot be read: {error.strerror}") from error
    if (cause := lacking(source)) is not None:
        raise SuiteError(f"{file}: {cause}")
    return source


def lacking(source: str) -> str | None:
    """Why a text is no reference file, in one line; None when it defines or assigns all that one has.

    >>> lacking("class Model: pass\\n")
    'it defines no get_inputs; a problem has Model, get_inputs, and get_init_inputs if Model needs arguments'
    """
    try:
        tree = ast.parse(source.removeprefix("\ufeff"))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:  # ValueError: a null byte
        return f"not a Python file: {error}"
    defined = {node.name for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    assigned = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    defined |= {target.id for target in assigned if isinstance(target, ast.Name)}
    missing = [name for name in REQUIRED if name not in defined]
    return f"it defines no {missing[0]}; a problem has {FUNCTIONS}" if missing else None


def _number(stem: str) -> tuple[int, str]:
    """The sort key of a file: `2_b` comes before `10_a`, and files without a number come last, by name."""
    found = re.match(r"(\d+)", stem)
    return (int(found[1]) if found else NO_NUMBER, stem)
