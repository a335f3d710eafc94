"""A benchmark's page: the tables that its results hold, and every trajectory of its ledger in a browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlkernel.benchmark import page as benchmark_page
from rlkernel.benchmark import results as benchmark_report
from rlkernel.benchmark import tables as benchmark_tables
from rlkernel.benchmark.trajectories import Ledger, TurnRow
from rlkernel.policy.writer import Answer
from rlkernel.types import Evaluation, Problem
from tests.report import chromium, many_turns

needs_browser = pytest.mark.skipif(chromium.FOUND is None, reason="browser tests (install chromium)")
MANIFEST = {"benchmark": {"problems": [], "model": "org/name"}, "sizes": {}, "flags": {}}


def fill(directory: Path, trajectories: int) -> tuple[Ledger, dict[str, int], dict[str, str], list[Problem]]:
    """A ledger of trajectories of three turns, the first of them hostile; samples and prompts by problem; the problems."""
    run = many_turns.write_run(directory / "run", "x", 0, trajectories, evil=True)
    ledger = Ledger(directory / "benchmark")
    samples: dict[str, int] = {}
    prompts: dict[str, str] = {}
    for line in (run / "transcripts.jsonl").read_text().splitlines():
        row = json.loads(line)
        sample = samples.get(row["problem"], 0)
        samples[row["problem"]] = sample + 1
        prompts[row["problem"]] = row["prompt"]
        for k, turn in enumerate(row["turns"]):
            answer = Answer(turn["completion"], turn["stop"], completion_tokens=1000 + k, cost=0.25 * (k == 2))
            saw = (0,) if k == 2 else tuple(range(k))
            facts = Evaluation.from_json(turn["evaluation"])
            ledger.append(
                TurnRow(row["problem"], sample, k, saw, answer, turn["code"], facts, turn["reward"], turn["feedback"], 1.0)
            )
    return ledger, samples, prompts, [Problem(name, 1 + (name[5] == "2"), "validation", "") for name in samples]


def write(directory: Path, trajectories: int) -> tuple[Path, Ledger]:
    ledger, samples, prompts, problems = fill(directory, trajectories)
    ledger.leave_out("level1/large", "no size fits <b>")
    everything = [*problems, Problem("level1/large", 1, "validation", "")]
    wanted, asked = {**samples, "level1/large": 1}, {**prompts, "level1/large": ""}
    results = benchmark_report.write(directory / "benchmark", MANIFEST, everything, wanted, 3, ledger)
    return benchmark_page.write(directory / "benchmark", "org/name", results, ledger, wanted, 3, asked), ledger


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ledger]:
    return write(tmp_path_factory.mktemp("page"), 120)


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Page]:
    with chromium.chromium(tmp_path_factory.mktemp("profile")) as tab:
        tab.size(1280, 800)
        yield tab


def text(tab: chromium.Page, selector: str) -> list[str]:
    found: list[str] = tab.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].map((node) => node.innerText)")
    return found


def test_the_page_has_the_tables_of_the_terminal(made: tuple[Path, Ledger]) -> None:
    page, _ = made
    results = json.loads(page.with_name("results.json").read_text())
    rows = [re.sub(r"<[^>]+>", " ", row).split() for row in re.findall(r"<tr>(.*?)</tr>", page.read_text())]
    tables = benchmark_tables.tables(results)
    assert [table.columns for table in tables] == [
        ("", "level 1", "level 2", "all"),
        ("turn", "Fast@1 best", "Fast@1.2 best", "Fast@1 last", "Fast@1.2 last"),
    ]
    for table in (*tables, *benchmark_tables.long_tables(results)):
        for row in table.rows:
            assert " ".join(row).replace(">", "&gt;").split() in rows
    source = page.read_text()
    assert "level1/large: no size fits &lt;b&gt;" in source and "<b>measured</b>" in source
    assert "default-src 'none'" in source and not re.findall(r"(?:href|src)=\"(?!data:|#)|url\(|@import", source)


def test_nothing_tried_is_a_page_too(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    problems = [Problem("level1/relu", 1, "validation", "")]
    results = benchmark_report.write(tmp_path, MANIFEST, problems, {"level1/relu": 2}, 1, ledger)
    page = benchmark_page.write(tmp_path, "name", results, ledger, {"level1/relu": 2}, 1, {"level1/relu": ""})
    assert "Nothing was scored." in page.read_text() and "<b>Incomplete</b>" in page.read_text()


@needs_browser
def test_every_trajectory_is_listed_problem_by_problem(made: tuple[Path, Ledger], tab: chromium.Page) -> None:
    page, ledger = made
    rows = list(ledger.rows)
    tab.open(page, "#view=turns")
    assert text(tab, "#count") == ["360 of 360 turns"]
    first = rows[0]
    assert text(tab, ".row .name")[:3] == [first.problem] * 3
    assert text(tab, ".row .where")[:3] == [f"trajectory 1 · turn {k}/3" for k in (1, 2, 3)]
    labels = [label.split("\n")[0] for label in text(tab, "#filters label")]
    assert labels == ["Problem", "Search in answers", "Trajectory", "Turn", "Speedup", "Coverage, %", "Order"]
    wanted = [
        row
        for row in rows
        if row.sample == 1 and row.evaluation is not None and row.evaluation.correct and (row.evaluation.speedup or 0) >= 1.2
    ]
    tab.open(page, "#view=turns&status=correct&step=2&speedup=1.2-")
    assert 0 < len(wanted) == int(text(tab, "#count")[0].split()[0])
    assert all("trajectory 2 · " in where for where in text(tab, ".row .where"))


@needs_browser
def test_a_turn_shows_what_was_asked_seen_and_spent(made: tuple[Path, Ledger], tab: chromium.Page) -> None:
    page, ledger = made
    names = sorted({row.problem for row in ledger.rows})
    problem = next(name for name in names[3:] if ledger.trajectory(name, 0)[2].code is not None)
    turns = ledger.trajectory(problem, 0)
    tab.open(page, f'#view=turns&problem="{problem}"&step=1')
    for _ in range(3):
        tab.press("j")
    tab.wait_until("document.getElementById('turn').dataset.at.endsWith('.3')")
    third = turns[2]
    assert text(tab, "#turn h3") == [problem]
    assert text(tab, "#turn .topline p") == ["org/name · trajectory 1 · saw turn 1"]
    assert "1,002 tokens · cost 0.2500" in text(tab, "#turn .verdict")[0]
    tab.evaluate("document.querySelectorAll('#turn details').forEach((node) => { node.open = true; })")
    whole = tab.evaluate("document.getElementById('turn').textContent")
    assert third.answer is not None and third.code is not None
    for part in ("Rewrite this Model", third.answer.text.split("```")[0].strip(), third.code, third.feedback, turns[1].feedback):
        assert part in whole
    assert len(text(tab, "#turn .tab")) == 3
    tab.press("d")
    tab.wait_until("document.querySelector('.diff')")


@needs_browser
def test_problems_have_their_share_of_trajectories(made: tuple[Path, Ledger], tab: chromium.Page) -> None:
    page, ledger = made

    def fast(rows: list[TurnRow]) -> bool:
        found = [row.evaluation for row in rows if row.evaluation is not None and row.evaluation.correct]
        return any((facts.speedup or 0) >= 1.2 for facts in found)

    names = sorted({row.problem for row in ledger.rows})
    trajectories: dict[str, list[list[TurnRow]]] = {name: [] for name in names}
    for name in names:
        while rows := ledger.trajectory(name, len(trajectories[name])):
            trajectories[name].append(rows)
    shares = {name: sum(map(fast, found)) / len(found) for name, found in trajectories.items()}
    tab.open(page, "#view=problems")
    cells = tab.evaluate(
        "[...document.querySelectorAll('#problems tbody tr')].map((r) => [...r.children].map((c) => c.innerText))"
    )
    assert {row[0].replace("\u00a0", " "): row[1] for row in cells if many_turns.EVIL[:5] not in row[0]} == {
        name: f"{int(100 * share + 0.5)} %" for name, share in shares.items() if many_turns.EVIL[:5] not in name
    }
    assert len(cells) == len(names)


@needs_browser
@pytest.mark.parametrize("view", ["summary", "problems", "turns", "turns&status=correct&sort=speedup"])
def test_nothing_missing_is_spelt_out_and_nothing_hostile_runs(made: tuple[Path, Ledger], tab: chromium.Page, view: str) -> None:
    page, _ = made
    tab.events.clear()
    tab.open(page, f"#view={view}")
    assert not re.search(r"\b(null|undefined|NaN)\b|\[object", tab.evaluate("document.body.innerText"))
    assert tab.evaluate("document.title") == "Benchmark of org/name"
    seen: list[dict[str, Any]] = tab.events
    assert not [e for e in seen if e.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled")]
