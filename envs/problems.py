"""Problem suites as values: ours in `envs/suite/`, or any directory in KernelBench's layout.

Loading reads and parses the files; it executes none of them.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from rlkernel.sources.directory import SuiteError as SuiteError
from rlkernel.sources.directory import problem_files, read_reference
from rlkernel.sources.load import load
from rlkernel.types import Problem, Split

SUITE = Path(__file__).parent / "suite"
SPLIT = SUITE / "split.json"
"""The file of the literal table family -> split -> names, which is literal so that adding a problem moves no other."""


@cache
def load_suite() -> tuple[Problem, ...]:
    """Our suite with its literal split, sorted by level and name. Raises SuiteError when files and `split.json` disagree."""
    table: dict[str, dict[Split, list[str]]] = json.loads(SPLIT.read_text())
    split = {name: which for family in table.values() for which, names in family.items() for name in names}
    files = problem_files(SUITE)
    if difference := sorted(set(split) ^ {file.name for file in files}):
        raise SuiteError(f"{SPLIT}: {difference[0]} is in the table or on disk but not in both; give it a file and one entry")
    return tuple(Problem(file.name, file.level, split[file.name], read_reference(file.path)) for file in files)


def family_of(problem: Problem) -> str:
    """The family of a problem of our suite, e.g. `chain`. Raises SuiteError for a problem from elsewhere."""
    for family, table in json.loads(SPLIT.read_text()).items():
        if any(problem.name in names for names in table.values()):
            return str(family)
    raise SuiteError(f"{problem.name}: not a problem of {SUITE}")


def load_directory(path: str | Path) -> tuple[Problem, ...]:
    """Any directory in KernelBench's layout: `level1/*.py`, `level2/*.py`, ... or problem files directly in it.

    Numeric prefixes order the files. About a quarter, chosen by a hash of the name, is the validation split, so that adding a
    file moves no other. Raises SuiteError: no such directory, no problems, a file without Model or get_inputs.
    """
    return load(str(path)).problems
