"""The pages of `docs/` name what exists, and all of it."""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import pytest
import torch

import rlkernel
from algorithms import TABLES
from algorithms.tiered_reward import TieredReward
from examples import rl_loop
from experiments.arms import PRESETS
from experiments.catalogue import NAMES
from rlkernel.busy import Busy
from rlkernel.commands.metrics import TOGETHER
from rlkernel.config import Run
from rlkernel.environment.speed_reward import SpeedReward
from rlkernel.metrics import rollout_metrics
from rlkernel.report.claims import Verdict
from rlkernel.training.diagnostics import ages
from rlkernel.training.hooks import StepFacts
from rlkernel.training.loop import OWN_NUMBER
from rlkernel.training.meter import MeteredEvaluator, Meters
from rlkernel.types import Completion, Evaluation, Group, Oracle, Problem, Status, Trajectory, Turn

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
    completion = Completion((1,), (0.0,), "", "stop", (0,))
    turns = (Turn((), completion, "", Evaluation(Status.CORRECT, "", speedup=1.0, coverage=1.0), 1.0, ""),) * 2
    problem = Problem("p", 1, "train", "", (Oracle("NVIDIA H200", "measured", 2.0),))
    groups = (Group(problem, (Trajectory(problem, turns),)),)
    facts = StepFacts(1, groups, 1, 1, 1, 1, {"mrs": 0, "prs": 1}, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, (1.0,), None, None, 1.0)
    meters = Meters(Idle(), MeteredEvaluator(Idle(), Busy()))  # type: ignore[arg-type]
    return {*rollout_metrics(groups), *facts.numbers(), *meters.lap(), *ages(groups, 0, by_turn=True), OWN_NUMBER}


def test_every_logged_metric_is_on_the_page_of_metrics_with_a_formula_and_a_meaning() -> None:
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in METRICS.splitlines() if line.startswith("| `")]
    patterns = {name: row for row in rows for name in re.findall(r"`([^`]+)`", row[0])}
    blanks = {"status": "|".join(Status), "t": r"\d+", "p": "1|1.2", "correction": r"\w+"}
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


DOCUMENTS = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "evaluator").glob("*.md"))
}


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as a viewer of Markdown makes them.

    >>> anchors("## No GPU is found, or not")
    {'no-gpu-is-found-or-not'}
    """
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", sorted(DOCUMENTS))
def test_links_between_the_pages_and_to_files_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", DOCUMENTS[page]):
        path, _, anchor = target.partition("#")
        file = (ROOT / page).parent / path if path else ROOT / page
        assert file.exists(), target
        assert not anchor or anchor in anchors(file.read_text(encoding="utf-8")), target


@pytest.mark.parametrize(
    "page", sorted(DOCUMENTS.keys() - {"docs/add_an_estimator.md", "docs/add_a_correction.md"})
)  # which makes files
def test_files_that_the_pages_name_exist(page: str) -> None:
    named = re.findall(r"`((?:rlkernel|algorithms|envs|experiments|examples|tests|docs|benchmarks)/[\w./-]+)`", DOCUMENTS[page])
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", sorted(DOCUMENTS))
def test_no_page_names_a_file_like_a_module_of_the_standard_library(page: str) -> None:
    """Python would import the reader's file in the module's place, in every program that is started beside it."""
    made = {
        name for name in re.findall(r"(?<![\w/.])(\w+)\.py\b", DOCUMENTS[page]) if not list(ROOT.glob(f"rlkernel/**/{name}.py"))
    }
    assert made & sys.stdlib_module_names == set()


def test_every_page_is_reached_from_the_readme_or_from_its_rooms_door() -> None:
    linked = {f"docs/{name}" for name in re.findall(r"\(docs/(\w+\.md)", DOCUMENTS["README.md"])}
    behind = {f"docs/{name}" for name in re.findall(r"\((evaluator/\w+\.md)", DOCUMENTS["docs/evaluator.md"])}
    assert linked | behind == DOCUMENTS.keys() - {"README.md"}


def test_the_readme_is_a_front_door() -> None:
    assert len(DOCUMENTS["README.md"].splitlines()) <= 150


def test_the_readme_has_the_counts_of_the_results() -> None:
    readme = DOCUMENTS["README.md"]
    linked = re.search(r"\((docs/results/\S*README.md)\)", readme)
    assert linked is not None
    results = (ROOT / linked[1]).read_text(encoding="utf-8")
    counts = re.search(r"^(\d+) reproduced, (\d+) not reproduced, (\d+) unclear, of (\d+) different", results, re.MULTILINE)
    said = re.search(
        r"of (\d+) claims.*?(\d+) (?:is|are) reproduced, (\d+) (?:is|are) not,\s+and (\d+)\s+(?:is|are) unclear",
        readme,
        re.DOTALL,
    )
    assert counts is not None and said is not None
    assert (said[2], said[3], said[4], said[1]) == counts.groups()


@pytest.mark.slow
def test_the_python_of_the_readme_trains_a_policy(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (lines,) = re.findall(r"^```python\n(.*?)^```$", DOCUMENTS["README.md"], re.DOTALL | re.MULTILINE)
    real = rl_loop.main
    monkeypatch.setattr(rl_loop, "main", lambda argv, **own: real(["--steps", "1"], problems=1, rollouts=2, device="cpu", **own))
    names: dict[str, Any] = {"__name__": "readme"}
    exec(compile(lines, "README.md", "exec"), names)
    assert re.fullmatch(r"step +1  reward .* tokens/s .* s\n", capsys.readouterr().out)
    # Returns 4 and 0, mean 2, so +2 and -2 before they are clipped; what stands at an ended trajectory has no influence.
    returns_GKT, valid_GKT = torch.tensor([[[4.0], [0.0], [torch.nan]]]), torch.tensor([[[True], [True], [False]]])
    assert names["Clipped"]()(returns_GKT, valid_GKT).tolist() == [[[1.0], [-1.0], [0.0]]]


@pytest.mark.parametrize("page", sorted(DOCUMENTS))
def test_cells_of_tables_are_short(page: str) -> None:
    cells = [cell for row in table(DOCUMENTS[page]) for cell in row]
    assert [cell for cell in cells if len(cell) > 120] == []


CONCEPTS = DOCUMENTS["docs/concepts.md"]


def test_the_terms_are_defined_where_the_page_of_concepts_says() -> None:
    links = re.findall(r"\[`(\w+)`\]\(\.\./([\w/]+\.py)\)", CONCEPTS)
    assert len(links) > 15
    for name, path in links:
        assert re.search(rf"^(class )?{name}\b", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE), f"{name} in {path}"


def test_statuses_and_what_they_are_paid() -> None:
    rows = {row[0].strip("`"): row for row in table(CONCEPTS) if row[0].startswith("`") and len(row) == 4}
    assert rows.keys() == set(Status)
    for status in set(Status) - {Status.CORRECT}:
        facts = Evaluation(status, "", speedup=2.0)
        assert (float(rows[status][2]), float(rows[status][3])) == (SpeedReward()(facts), TieredReward()(facts)), status
    paid = [(SpeedReward()(fact), TieredReward()(fact)) for fact in map(correct_at, (9.0, 1.0, 0.9))]
    assert paid == [(0.5 + 0.5 * 3, 1.0), (1.0, 0.2), (0.95, -0.1)]
    assert rows["correct"][2:] == ["0.5 + 0.5 min(s, 3)", "1 to 0.2 by `s`; -0.1 below 1"]


def correct_at(speedup: float) -> Evaluation:
    return Evaluation(Status.CORRECT, "", speedup=speedup)


def table(text: str) -> list[list[str]]:
    """Rows of every table, their cells stripped."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]


def test_the_page_on_divergence_reads_numbers_that_are_logged() -> None:
    page = DOCUMENTS["docs/my_run_diverges.md"]
    assert len(TOGETHER) > 6 and set(TOGETHER) <= logged()
    # Every question names one of them, and what to do about it.
    questions = re.findall(r"^\*\*\d\. .*?(?=\n\n)", page, re.DOTALL | re.MULTILINE)
    assert len(questions) == 8
    for question in questions:
        assert set(re.findall(r"`(\w+)`", question)) & {*logged(), "grad_norm_turn_1"} and "*Do:*" in question


def test_every_experiment_is_on_its_page() -> None:
    first = {row[0].strip("`") for row in table(DOCUMENTS["docs/experiments.md"])}
    assert {name for name in first if (ROOT / "experiments" / f"{name}.py").is_file()} == {
        *NAMES,
        "sequential_scaling",
        "estimator_bias",
        "off_policy_bias",
    }


def test_the_page_of_experiments_links_what_was_found_with_each() -> None:
    rows = {row[0].strip("`"): row for row in table(DOCUMENTS["docs/experiments.md"])}
    for name in (*NAMES, "sequential_scaling"):
        results = ROOT / "docs" / "results"
        pages = [*sorted(results.glob(f"*/{name}/README.md"))[-1:], *results.glob(f"{name}/README.md")]
        if pages:
            for page in pages:
                assert f"({page.relative_to(ROOT / 'docs').as_posix()})" in rows[name][2], name
        else:
            assert rows[name][2] in ("not run yet", "not run in full yet", "[log](log.md)"), name


def test_presets_and_verdicts_are_on_the_page_of_experiments() -> None:
    rows = {row[0].strip("`"): row for row in table(DOCUMENTS["docs/experiments.md"])}
    verdicts = {row[0].strip("`") for row in table(DOCUMENTS["docs/report.md"])}
    for name, preset in PRESETS.items():
        assert rows[name][1] == ("measured" if preset.gpu else "modelled")
    assert set(Verdict) <= verdicts


def test_fields_that_the_page_of_experiments_offers_are_fields_of_a_run() -> None:
    (part,) = re.findall(r"^\| field \|.*?(?=\n\n)", DOCUMENTS["docs/experiments.md"], re.DOTALL | re.MULTILINE)
    given = [re.match(r"\w+", name)[0] for row in table(part)[2:] for name in re.findall(r"`([^`]+)`", row[0])]  # type: ignore[index]
    assert len(given) > 6 and set(given) <= {item.name for item in fields(Run)}
