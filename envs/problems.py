"""Problem suites as values: ours in `envs/suite/`, or any directory in KernelBench's layout.

Loading reads and parses the files; it executes none of them.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from functools import cache
from pathlib import Path

from rlkernel.reference import REQUIRED
from rlkernel.types import Problem, Split

SUITE = Path(__file__).parent / "suite"
SPLIT = SUITE / "split.json"
"""The file of the literal table family -> split -> names, which is literal so that adding a problem moves no other."""


NO_NUMBER = 1 << 62


class SuiteError(ValueError):
    """A directory or file that is no suite. The message is one line with the path and the fix."""


@cache
def load_suite() -> tuple[Problem, ...]:
    """Our suite with its literal split, sorted by level and name. Raises SuiteError when files and `split.json` disagree."""
    table: dict[str, dict[Split, list[str]]] = json.loads(SPLIT.read_text())
    split = {name: which for family in table.values() for which, names in family.items() for name in names}
    files = _files(SUITE)
    if difference := sorted(set(split) ^ {name for _, name, _ in files}):
        raise SuiteError(f"{SPLIT}: {difference[0]} is in the table or on disk but not in both; give it a file and one entry")
    return tuple(Problem(name, level, split[name], _read(file)) for level, name, file in files)


def family_of(problem: Problem) -> str:
    """The family of a problem of our suite, e.g. `chain`. Raises SuiteError for a problem from elsewhere."""
    for family, table in json.loads(SPLIT.read_text()).items():
        if any(problem.name in names for names in table.values()):
            return str(family)
    raise SuiteError(f"{problem.name}: not a problem of {SUITE}")


def load_directory(path: str | Path) -> tuple[Problem, ...]:
    """Any directory in KernelBench's layout: `level1/*.py`, `level2/*.py`, ... or problem files directly in it.

    Numeric prefixes order the files. About a quarter, chosen by a hash of the name, is the validation split, so that adding a
    file moves no other. Raises SuiteError: no such directory, no problems, a file without Model, get_inputs or get_init_inputs.
    """
    directory = Path(path)
    if not directory.is_dir():
        raise SuiteError(f"{directory}: no such directory; give one that holds level1/*.py or problem files")
    files = _files(directory)
    if not files:
        raise SuiteError(f"{directory}: no problems in it; expected level1/*.py, level2/*.py, ... or *.py files")
    return tuple(Problem(name, level, _hashed_split(name), _read(file)) for level, name, file in files)


def _files(directory: Path) -> list[tuple[int, str, Path]]:
    """The problem files of a directory as (level, name, file), in order."""
    folders = [child for child in directory.iterdir() if child.is_dir()]
    levels = [(int(found[1]), child) for child in folders if (found := re.fullmatch(r"level_?(\d+)", child.name))]
    if not levels:
        own = re.fullmatch(r"level_?(\d+)", directory.resolve().name)
        levels = [(int(own[1]) if own else 1, directory)]
    files = []
    for level, folder in sorted(levels):
        problems = [file for file in folder.glob("*.py") if not file.name.startswith(("_", "."))]
        files += [(level, f"level{level}/{file.stem}", file) for file in sorted(problems, key=lambda file: _number(file.stem))]
    return files


def _number(stem: str) -> tuple[int, str]:
    """The sort key of a file: `2_b` comes before `10_a`, and files without a number come last, by name."""
    found = re.match(r"(\d+)", stem)
    return (int(found[1]) if found else NO_NUMBER, stem)


def _hashed_split(name: str) -> Split:
    return "validation" if hashlib.sha256(name.encode()).digest()[0] < 64 else "train"


def _read(file: Path) -> str:
    try:
        source = file.read_text(encoding="utf-8-sig")
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:  # ValueError: not UTF-8, or a null byte
        raise SuiteError(f"{file}: not a Python file: {error}") from error
    except OSError as error:
        raise SuiteError(f"{file}: cannot be read: {error.strerror}") from error
    defined = {node.name for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    for name in REQUIRED:
        if name not in defined:
            raise SuiteError(f"{file}: it defines no {name}; a problem has Model, get_inputs and get_init_inputs")
    return source
