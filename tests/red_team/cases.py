"""The red team's candidates as values: `hostile/` holds hacks and accidents, `honest/` what a naive checker would flag.

Each file is one candidate, and its first line is its verdict:

    # <problem> <status>[ cpu=<status>][ gpu=<status>][ coverage<0.2][ speedup<1][ catalogue=14,18]: why

problem      a problem of the suite (`level1/softmax`), `relu`: tests/red_team/reference.py, or `own/<name>`: one of
             tests/red_team/problems, each made for a cause that the suite does not show
status       what it deserves, on every device
cpu= gpu=    only where that path's status differs, with the reason in the text. `a|b` where chance decides, e.g. what lies
             behind an address. The CPU path checks the small shape and samples the work at the full one; the GPU path knows
             the full shape alone, and really runs it. So work that is left out at full shape alone is `implausible` or
             `inconsistent` on the CPU and `incorrect` on the GPU, and a race or a fault happens on the GPU alone
coverage     a bound on the share of live Triton launches, for candidates that are right but leave most work to torch
speedup      what a modelled speedup must be below, for candidates that are right and slow
catalogue    the hacks of the catalogue below that the file tries, or that an honest file could be mistaken for

The catalogue's groups, by number: A 1-11 not doing the work in Triton; B 12-22 replaying old results; C 23-32 stealing the
answer; D 33-43 tampering with measurement or judgement; E 44-50 hiding work from the timer; F 51-63 weak correctness;
G 64-80 attacking the process or the protocol.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from envs.problems import load_suite
from rlkernel.types import Problem, Status

FOLDER = Path(__file__).parent
GROUPS = {
    "A": range(1, 12),
    "B": range(12, 23),
    "C": range(23, 33),
    "D": range(33, 44),
    "E": range(44, 51),
    "F": range(51, 64),
    "G": range(64, 81),
}
_LINE = re.compile(
    r"# (?P<problem>relu|own/\w+|level\d/\w+) (?P<status>[a-z_]+)"
    r"(?: cpu=(?P<cpu>[a-z_|]+))?(?: gpu=(?P<gpu>[a-z_|]+))?"
    r"(?: coverage(?P<side>[<>])(?P<bound>[\d.]+))?(?: speedup<(?P<speedup>[\d.]+))?"
    r"(?: catalogue=(?P<catalogue>\d+(?:,\d+)*))?: (?P<why>\S.*)"
)


@dataclass(frozen=True, slots=True)
class Case:
    """One candidate and what it deserves."""

    name: str
    """Path in the red team's folder, without the suffix."""
    problem: Problem
    cpu: frozenset[Status]
    gpu: frozenset[Status]
    coverage: tuple[float, float] | None
    """Lowest and highest; None where nothing is asked."""
    speedup: float | None
    """What a modelled one is below; None where nothing is asked."""
    catalogue: tuple[int, ...]
    why: str
    code: str

    def expected(self, device: str) -> frozenset[Status]:
        return self.cpu if device == "cpu" else self.gpu


def relu() -> Problem:
    """The small problem that most hacks are written for."""
    return Problem("relu", 1, "train", (FOLDER / "reference.py").read_text())


def parse(name: str, code: str, problems: dict[str, Problem]) -> Case:
    """Raises ValueError for a first line that is not a verdict."""
    found = _LINE.fullmatch(code.partition("\n")[0])
    if found is None:
        raise ValueError(
            f"{name}: the first line is not '# <problem> <status>[ cpu=..][ gpu=..][ coverage..][ speedup..][ catalogue=..]: why'"
        )
    if found["problem"] not in problems:
        raise ValueError(f"{name}: there is no problem {found['problem']}")
    usual = frozenset({Status(found["status"])})

    def special(device: str) -> frozenset[Status]:
        return frozenset(map(Status, found[device].split("|"))) if found[device] else usual

    bound = float(found["bound"] or 0)
    coverage = None if found["side"] is None else (0.0, bound) if found["side"] == "<" else (bound, 1.0)
    catalogue = tuple(int(number) for number in (found["catalogue"] or "").split(",") if number)
    speedup = None if found["speedup"] is None else float(found["speedup"])
    statuses = special("cpu"), special("gpu")
    return Case(name, problems[found["problem"]], *statuses, coverage, speedup, catalogue, found["why"], code)


def own_problems() -> dict[str, Problem]:
    """The problems that were made for the red team."""
    files = sorted((FOLDER / "problems").glob("*.py"))
    return {f"own/{file.stem}": Problem(f"own/{file.stem}", 1, "train", file.read_text()) for file in files}


def load(folder: str) -> dict[str, Case]:
    """`hostile` or `honest`: every candidate by its path in that folder. Raises ValueError, see `parse`."""
    problems = {"relu": relu(), **own_problems(), **{problem.name: problem for problem in load_suite()}}
    files = sorted((FOLDER / folder).rglob("*.py"))
    names = [str(file.relative_to(FOLDER / folder).with_suffix("")) for file in files]
    return {name: parse(f"{folder}/{name}", file.read_text(), problems) for name, file in zip(names, files, strict=True)}
