"""The tables of `docs/` name what exists, and all of it."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import rlkernel
from algorithms import TABLES
from rlkernel.loop import OWN_NUMBERS
from rlkernel.meter import Busy, MeteredEvaluator, Meters
from rlkernel.metrics import rollout_metrics
from rlkernel.trainer import StepFacts
from rlkernel.types import Completion, Evaluation, Group, Problem, Status, Trajectory, Turn

ROOT = Path(rlkernel.__file__).parent.parent
PAPERS = (ROOT / "docs" / "papers.md").read_text()
METRICS = (ROOT / "docs" / "metrics.md").read_text()


@pytest.mark.parametrize("cls", [cls for classes in TABLES.values() for cls in classes.values()])
def test_every_registered_method_is_on_the_page_of_papers(cls: type) -> None:
    file = cls.__module__.replace(".", "/") + ".py"
    assert re.search(rf"^\|.*`{cls.__name__}(\(.*\))?`, `{file}`", PAPERS, re.MULTILINE)


def test_files_and_tests_on_the_page_of_papers_exist() -> None:
    named = re.findall(r"`([\w/]+\.py)(?:::(\w+))?`", PAPERS)
    assert len(named) > 40
    for name, test in named:
        path = ROOT / (name if "/" in name else f"tests/algorithms/{name}")
        assert path.is_file(), name
        functions = {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)}
        assert not test or test in functions, f"{name}::{test}"


@dataclass
class Idle:
    """Stands for the policy and the evaluator of a run that has done nothing yet."""

    busy: Busy = field(default_factory=Busy)
    tokens: int = 0


def logged() -> set[str]:
    """The keys of a row of `metrics.jsonl`."""
    completion = Completion((1,), (0.0,), "", "stop")
    turns = (Turn((), completion, "", Evaluation(Status.CORRECT, "", speedup=1.0, coverage=1.0), 1.0, ""),) * 2
    problem = Problem("p", 1, "train", "")
    groups = (Group(problem, (Trajectory(problem, turns),)),)
    facts = StepFacts(1, groups, 1, 1, 1, 1, {"mrs": 0, "prs": 1}, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    meters = Meters(Idle(), MeteredEvaluator(Idle(), Busy()))  # type: ignore[arg-type]
    return {*rollout_metrics(groups), *facts.numbers(), *meters.lap(), *OWN_NUMBERS}


def test_every_logged_metric_is_on_the_page_of_metrics_with_a_formula_and_a_meaning() -> None:
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in METRICS.splitlines() if line.startswith("| `")]
    patterns = {name: row for row in rows for name in re.findall(r"`([^`]+)`", row[0])}
    blanks = {"status": "|".join(Status), "t": r"\d+", "p": "1|1.2", "rejection": r"\w+"}
    found = {
        re.compile(re.sub(r"<(\w+)>", lambda blank: f"({blanks[blank[1]]})", name.replace(".", r"\."))): row
        for name, row in patterns.items()
    }
    for key in logged():
        rows_of_key = [row for pattern, row in found.items() if pattern.fullmatch(key)]
        assert rows_of_key, f"docs/metrics.md has no row for {key}"
        assert all(len(row) == 3 and row[1] and row[2] for row in rows_of_key), key
    for pattern in found:
        assert any(pattern.fullmatch(key) for key in logged()), f"nothing logs {pattern.pattern}"
