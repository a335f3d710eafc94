"""The page, the figure and the table, from small run directories written by hand."""

from __future__ import annotations

import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from rlkernel.report import terminal
from rlkernel.report.claims import Claim
from rlkernel.report.configurations import differences, manifest_text
from rlkernel.report.page import TEXT_LIMIT
from rlkernel.report.report import Story, write_report
from rlkernel.report.samples import choose_trajectories, steps
from rlkernel.report.summary import read_run, summarise
from rlkernel.report.terminal import print_table
from rlkernel.report.viewer import script
from rlkernel.types import Evaluation, LaunchFact, OpFact, Status

EVIL = "</pre><script>fetch('http://evil.example')</script><img src=x onerror=alert(1)>"


def evaluation(status: Status, speedup: float | None = None, coverage: float | None = None, detail: str = "") -> dict[str, Any]:
    timing = None if speedup is None else "modelled"
    launches = (LaunchFact("fused", 1, 3.0, 0.75, True), LaunchFact("decoy", 1, 0.5, 0.1, False))
    ops = (OpFact("aten.mm", 2, 9.0, 0.15),)
    return Evaluation(status, detail, speedup=speedup, coverage=coverage, timing=timing, launches=launches, ops=ops).to_json()


def turn(verdict: dict[str, Any], reward: float, code: str = "x = 1", plan: str = "fuse it") -> dict[str, Any]:
    completion = f"{plan}\n```python\n{code}\n```"
    return {
        "completion": completion,
        "stop": "stop",
        "code": code,
        "evaluation": verdict,
        "reward": reward,
        "feedback": "status: seen",
    }


FAST = turn(evaluation(Status.CORRECT, 2.0, 0.9), 1.5)
LAZY = turn(evaluation(Status.CORRECT, 1.0, 0.05), 1.0)
WRONG = turn(evaluation(Status.INCORRECT, detail=EVIL), 0.0)
DECOY = turn(evaluation(Status.NO_KERNEL), 0.0)


def transcript(problem: str, *turns: dict[str, Any], step: int = 10, split: str = "validation") -> dict[str, Any]:
    return {"split": split, "step": step, "problem": problem, "prompt": "Rewrite", "turns": list(turns)}


def write_run(directory: Path, arm: str, seed: int, reward: float, transcripts: list[dict[str, Any]]) -> Path:
    directory.mkdir()
    run = {"class": "Run", "name": arm, "seed": seed, "steps": 10, "advantage": {"class": arm.upper(), "eps": 0.5}}
    (directory / "manifest.json").write_text(json.dumps({"arm": arm, "seed": seed, "timing": "modelled", "run": run}))
    shares = {
        "fast_1": 0.5,
        "fast_1.2": 0.25,
        "fast_1_turn_1": 0.5,
        "fast_1.2_turn_1": 0.25,
        "hacking_rate": 0.125,
        "lazy_rate": 0.0,
    }
    rows = [{"step": step, "split": "validation", "reward": value, **shares} for step, value in ((0, 0.25), (10, reward))]
    (directory / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (directory / "transcripts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in transcripts))
    return directory


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    return [
        write_run(tmp_path / "a", "grpo", 0, 0.75, [transcript("level1/relu", WRONG, FAST)]),
        write_run(tmp_path / "b", "trloo", 0, 1.0, [transcript("level1/gelu", DECOY, LAZY)]),
    ]


class Tags(HTMLParser):
    """Collects tags with their attributes, and the text of table rows."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append("")

    def handle_data(self, data: str) -> None:
        if self.rows:
            self.rows[-1] = " ".join(f"{self.rows[-1]} {data}".split())


def test_page_holds_first_and_last_values_and_their_difference(tmp_path: Path, runs: list[Path]) -> None:
    rows = Tags(write_report(tmp_path / "out", Story("Estimators", "The claim.\n\nArms: two."), runs).read_text()).rows
    assert any(row.startswith("grpo 1 10 0.25 → 0.75 50 % → 50 %") for row in rows)
    assert any(row.startswith("trloo − grpo +0.25 0 % 0 % 0 % 0 % 0 %") for row in rows)
    assert any(row.startswith("Arm Seeds Steps Reward ↑ Fast@1 ↑") for row in rows)
    assert any(row.startswith("trloo advantage = TRLOO(eps=0.5)") for row in rows)


def test_the_first_line_is_the_finding_and_claims_without_runs_are_folded(tmp_path: Path, runs: list[Path]) -> None:
    claims = (
        Claim("RLOO above GRPO", "rloo", "grpo", "reward", ""),
        Claim("TRLOO above GRPO", "trloo", "grpo", "fast_1", ""),
    )
    page = write_report(tmp_path / "out", Story("Estimators", "The claim.", claims), runs).read_text()
    (heading,) = re.findall(r'<h1 class="finding">(.*?)</h1>', page)
    line = "trloo against grpo in Fast@1: not decided by 1 seed (difference 0 %); at least 2 seeds with a spread are needed."
    assert heading == line.replace(" %", "\u00a0%")
    folded = page[page.index('<details id="folded">') :].split("</details>")[0]
    assert "1 claim that these runs cannot judge" in folded and "RLOO above GRPO" in folded
    assert "RLOO above GRPO</td>" not in page and "TRLOO above GRPO<br>" in page
    assert 'id="rule"' in page  # which is left out where there is no verdict


def test_the_reason_why_claims_cannot_be_judged_is_said_once(tmp_path: Path, runs: list[Path]) -> None:
    claims = [Claim(f"{name} above GRPO", name, "grpo", "reward", "") for name in ("rloo", "max_rl", "dr_grpo")]
    page = write_report(tmp_path / "out", Story("Estimators", "The claim.", tuple(claims)), runs[:1]).read_text()
    folded = page[page.index('<details id="folded">') :].split("</details>")[0]
    assert "3 claims that these runs cannot judge" in folded and folded.count("<li>") == 3
    assert folded.count("No seed has finished in both arms:") == 1
    assert folded.lower().count("no seed has finished") == 1
    assert 'id="rule"' not in page


def test_rewards_of_arms_that_are_paid_differently_are_nowhere_side_by_side(tmp_path: Path, runs: list[Path]) -> None:
    for run, cap in zip(runs, (1.0, 3.0), strict=True):
        manifest = json.loads((run / "manifest.json").read_text())
        manifest["run"]["reward"] = {"class": "SpeedReward", "cap": cap}
        (run / "manifest.json").write_text(json.dumps(manifest))
    page = write_report(tmp_path / "out", Story("Estimators", "The claim."), runs).read_text()
    rows = Tags(page).rows
    assert any(row.startswith("grpo 1 10 50 % → 50 %") for row in rows)
    cells = re.findall(r"<t[dh].*?</t[dh]>", page, re.DOTALL)
    assert cells and not any("Reward" in cell.replace("SpeedReward", "") for cell in cells)
    assert "Mean reward" not in page and "paid by different rewards" in page
    console = Console(width=100, record=True, file=io.StringIO())
    print_table(summarise([read_run(run) for run in runs]), "modelled", console)
    assert "Reward" not in console.export_text()


def test_what_a_model_wrote_cannot_become_markup(tmp_path: Path) -> None:
    evil = turn(evaluation(Status.INCORRECT, detail=EVIL), 0.0, code=EVIL, plan=EVIL)
    run = write_run(tmp_path / "a", "grpo", 0, 0.5, [{**transcript(EVIL, evil), "prompt": EVIL}])
    page = write_report(tmp_path / "out", Story(EVIL, EVIL), [run]).read_text()
    tags = Tags(page).tags
    assert not [tag for tag, _ in tags if tag in ("iframe", "object", "link", "base")]
    # The packed turns, which are no script, and the viewer; its hash is the only one that may run.
    assert [attributes.get("id", "viewer") for tag, attributes in tags if tag == "script"] == ["index", "viewer", "block-0"]
    assert all(attributes["type"] == "text/plain" for tag, attributes in tags if tag == "script" and attributes)
    text, digest = script()
    assert f"<script>{text}</script>" in page and "</" not in text
    assert f"script-src '{digest}'\">" in page
    assert not [name for _, attributes in tags for name in attributes if name.startswith("on")]
    assert page.count("&lt;script&gt;") >= 5
    assert not [tag for tag, _ in tags if tag == "img"]


def test_page_needs_no_network(tmp_path: Path, runs: list[Path]) -> None:
    page = write_report(tmp_path / "out", Story("Estimators", "The claim."), runs).read_text()
    assert "default-src 'none'" in page
    assert not re.findall(r"(?:href|src)=\"(?!data:|#)|url\(|@import", page)


def test_page_is_bounded_whatever_the_transcripts_hold(tmp_path: Path) -> None:
    huge = turn(evaluation(Status.INCORRECT), 0.0, code="x" * 100_000, plan="y" * 100_000)
    run = write_run(tmp_path / "a", "grpo", 0, 0.5, [transcript(f"p{i}", huge) for i in range(12)])
    page = write_report(tmp_path / "out", Story("t", "d"), [run])
    assert page.stat().st_size < 25 * TEXT_LIMIT
    assert f"[{100_000 - TEXT_LIMIT} more characters]" in page.read_text()


def test_modelled_time_is_called_modelled(tmp_path: Path, runs: list[Path]) -> None:
    assert "<b>modelled</b>" in write_report(tmp_path / "out", Story("t", "d"), runs).read_text()


def test_a_run_without_transcripts_is_reported(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", "grpo", 0, 0.5, [])
    assert "No validation transcripts." in write_report(tmp_path / "out", Story("t", "d"), [run]).read_text()


def test_samples_are_of_the_last_step_each_for_its_reason_and_none_twice(tmp_path: Path) -> None:
    rows = [
        transcript("early", FAST, FAST, step=0),
        transcript("training", FAST, FAST, split="train"),
        transcript("lazy", LAZY, LAZY),
        transcript("decoy", DECOY, DECOY),
        transcript("repaired", WRONG, FAST),
        transcript("best", FAST, {**FAST, "reward": 2.0}),
    ]
    run = read_run(write_run(tmp_path / "a", "grpo", 0, 0.5, rows))
    chosen = {sample.transcript["problem"]: sample.why for sample in choose_trajectories(run)}
    assert set(chosen) == {"best", "repaired", "lazy", "decoy"}
    assert chosen["lazy"].startswith("lazy")
    assert chosen["decoy"].startswith("a hack")


def test_steps_are_sorted_by_cost_and_say_what_is_unused() -> None:
    found = steps(evaluation(Status.CORRECT, 2.0, 0.75))
    assert [(step["name"], step["live"]) for step in found] == [("aten.mm", None), ("fused", True), ("decoy", False)]


def test_only_fields_that_differ_are_listed() -> None:
    one = {"class": "Run", "name": "a", "seed": 0, "steps": 5, "advantage": {"class": "GRPO", "eps": 1e-6}}
    two = {**one, "name": "b", "advantage": {"class": "TRLOO"}}
    assert differences({"a": one, "b": two}) == {"a": {"advantage": "GRPO(eps=1e-06)"}, "b": {"advantage": "TRLOO()"}}


def test_manifest_is_shown_without_the_list_of_problems() -> None:
    manifest = {"arm": "a", "versions": {"torch": "2"}, "run": {"steps": 3, "problems": [{"name": f"p{i}"} for i in range(500)]}}
    shown = json.loads(manifest_text(manifest))
    assert shown == {"arm": "a", "versions": {"torch": "2"}, "run": {"steps": 3, "problems": "500 problems"}}


def test_one_seed_has_no_spread_to_explain(tmp_path: Path) -> None:
    console = Console(width=100, record=True, file=io.StringIO())
    print_table(summarise([read_run(write_run(tmp_path / "a", "grpo", 0, 0.5, []))]), "measured", console)
    assert console.export_text().splitlines()[0] == "validation, first → last (measured time)"


def test_table_fits_100_columns_with_many_seeds_and_long_names(tmp_path: Path) -> None:
    records = []
    for arm in ("multi_turn_trloo_with_mrs_and_prs", "grpo"):
        for seed, reward in enumerate((1.25, 1.75)):
            records.append(read_run(write_run(tmp_path / f"{arm}{seed}", arm, seed, reward, [])))
    console = Console(width=100, record=True, file=io.StringIO())
    print_table(summarise(records), "modelled", console)
    lines = console.export_text().splitlines()
    assert max(map(len, lines)) <= 100
    assert any("0.25 → 1.50 ± 0.25" in line and "12 ± 0 %" in line for line in lines)


def test_a_table_too_wide_is_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "COLUMNS", 70)
    arms = summarise(
        [read_run(write_run(tmp_path / f"{arm}{seed}", arm, seed, 1.5, [])) for arm in ("grpo", "trloo") for seed in (0, 1)]
    )
    console = Console(width=70, record=True, file=io.StringIO())
    print_table(arms, "modelled", console)
    lines = console.export_text().splitlines()[1:]
    assert max(map(len, lines)) <= 70
    heads = [line for line in lines if line.startswith("arm")]
    assert len(heads) == 2 and "Reward" in heads[0] and "Lazy" in heads[1]
    assert sum(line.startswith("trloo - grpo ") for line in lines) == 2  # in one piece, beside each part of the metrics
