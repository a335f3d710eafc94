"""The turns in the page: what is packed, and what a browser makes of it."""

from __future__ import annotations

import base64
import json
import random
import re
import zlib
from pathlib import Path
from typing import Any

import pytest

from rlkernel.metrics import LAZY_COVERAGE
from rlkernel.report.report import Story, write_report
from rlkernel.report.run_turns import turns_of
from rlkernel.report.summary import RunRecord, read_run
from rlkernel.report.viewer import PackedContent, script
from rlkernel.report.viewer import pack as pack_content
from tests.report import chromium, many_turns

needs_browser = pytest.mark.skipif(chromium.FOUND is None, reason="browser tests (install chromium)")


def pack(runs: list[RunRecord], *limit: int) -> PackedContent:
    return pack_content(turns_of(runs), *limit)


def unpack(packed: str) -> Any:
    return json.loads(zlib.decompress(base64.b64decode(packed)))


def write_run(directory: Path, rows: list[dict[str, Any]]) -> Path:
    many_turns.write_run(directory, "grpo", 0, 0)
    (directory / "transcripts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return directory


def turn(code: str | None, speedup: float | None = None, feedback: str = "") -> dict[str, Any]:
    facts = many_turns.verdict("incorrect" if speedup is None else "correct", speedup)
    completion = "no idea" if code is None else f"Plan.\n```python\n{code}```"
    return {"completion": completion, "stop": "stop", "code": code, "evaluation": facts, "reward": 0.5, "feedback": feedback}


def row(*turns: dict[str, Any], problem: str = "level1/relu", step: int = 10) -> dict[str, Any]:
    return {"split": "validation", "step": step, "problem": problem, "prompt": "Rewrite", "turns": list(turns)}


def test_every_turn_is_there_with_its_numbers_and_texts(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", [row(turn(None, feedback="no code"), turn("x = 1\n", 1.23456))])
    packed = pack([read_run(run)])
    index = unpack(packed.index)
    texts = [text for block in packed.blocks for text in unpack(block)]
    (run_, line, validation, step, problem, prompt, (first, second)) = index["trajectories"][0]
    assert (run_, line, validation, step) == (0, 1, 1, 10)
    assert (index["problems"][problem], texts[prompt]) == ("level1/relu", "Rewrite")
    assert index["statuses"][first[0]] == "incorrect" and index["statuses"][second[0]] == "correct"
    assert (first[1], second[1]) == (None, 1.235)
    assert [texts[i] if i >= 0 else None for i in first[4:8]] == ["no idea", None, "", "no code"]
    assert [texts[i] for i in second[4:8]] == ["Plan.", "x = 1\n", "", ""]
    assert json.loads(texts[second[8]])["speedup"] == 1.23456
    assert (packed.turns, packed.kept, packed.note()) == (2, 2, "")


def test_a_measured_problem_without_a_kept_turn_is_there(tmp_path: Path) -> None:
    """Fast@p is known of all that were validated, and turns are kept of some."""
    record = read_run(write_run(tmp_path / "a", [row(turn("x = 1\n", 1.0)), row(turn("x = 2\n", 1.0), problem="level1/shown")]))
    index = unpack(pack([record]).index)
    measured = set(record.outcomes[20])
    assert len(measured) == 12 and index["problems"] == sorted(measured | {"level1/relu", "level1/shown"})
    assert {name for name, shares in zip(index["problems"], index["measured"]["grpo"], strict=True) if shares} == measured
    assert index["problems"][index["trajectories"][0][4]] == "level1/relu"


@needs_browser
def test_the_table_of_problems_has_all_that_were_validated(tmp_path: Path, tab: chromium.Page) -> None:
    run = write_run(tmp_path / "a", [row(turn("x = 1\n", 1.0), problem="level1/shown")])
    tab.open(write_report(tmp_path / "report", Story("Estimators", "The claim."), [run]), "#view=problems")
    assert tab.texts("#problems h2") == ["Validation problems (13)"]
    assert (len(tab.texts("#problems tbody tr")), tab.texts("#problems tbody a")) == (13, ["level1/shown", "1/1"])


def test_a_text_is_stored_once(tmp_path: Path) -> None:
    packed = pack([read_run(write_run(tmp_path / "a", [row(turn("x = 1\n"), turn("x = 1\n")) for _ in range(50)]))])
    texts = [text for block in packed.blocks for text in unpack(block)]
    assert len(texts) == len(set(texts)) == 5  # prompt, plan, code, facts, and the empty text


def test_the_limit_holds_first_by_shorter_texts_then_by_fewer_trajectories(tmp_path: Path) -> None:
    chance = random.Random(0)
    # Hexadecimal digits pack to 4 bits: with 8,000 characters each, 40 texts need at least 160,000 bytes, a third more in base64.
    rows = [row(turn("x = 1\n" * 1_000, feedback=f"{chance.getrandbits(32_000):x}")) for _ in range(40)]
    run = read_run(write_run(tmp_path / "a", rows))
    whole = pack([run])
    assert whole.size > 213_000 and whole.note() == ""
    shorter = pack([run], whole.size // 2)
    assert shorter.size <= whole.size // 2
    assert (shorter.kept, shorter.text_limit, shorter.note()) == (40, 2_000, "texts cut at 2000 characters, code at 20000")
    fewer = pack([run], 6_000)
    assert fewer.size <= 6_000
    assert (fewer.kept, fewer.turns, fewer.note()) == (
        20,
        40,
        "20 of 40 turns, evenly chosen; texts cut at 200 characters, code at 2000",
    )


def test_the_script_makes_no_markup_from_text_and_asks_nobody() -> None:
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|fetch\(|XMLHttp|import\(", script()[0])


def test_a_surrogate_and_line_separators_are_packed(tmp_path: Path) -> None:
    packed = pack([read_run(write_run(tmp_path / "a", [row(turn("x = '\ud800\u2028'\n"))]))])
    assert "x = '\ud800\u2028'\n" in [text for block in packed.blocks for text in unpack(block)]


def test_facts_are_never_cut_in_the_middle(tmp_path: Path) -> None:
    odd = turn("x = 1\n", 2.0)
    step = {"kernel": "k" * 10_000, "calls": 1, "us": 1.0, "share": 0.1, "live": True}
    odd["evaluation"] |= {"detail": "d" * 50_000, "launches": [{**step, "us": float(i)} for i in range(100)]}
    packed = pack([read_run(write_run(tmp_path / "a", [row(odd)]))])
    facts = [json.loads(text) for block in packed.blocks for text in unpack(block) if text.startswith("{")]
    assert [launch["us"] for launch in facts[0]["launches"]] == [99.0 - i for i in range(16)]
    assert facts[0]["launches"][0]["kernel"] == "k" * 200 + "\n[9800 more characters]"
    assert facts[0]["detail"].endswith("[30000 more characters]")


def test_numbers_that_json_does_not_have_stay_readable(tmp_path: Path) -> None:
    odd = turn("x = 1\n", float("inf"))
    odd["evaluation"] |= {"max_error": float("nan")}
    packed = pack([read_run(write_run(tmp_path / "a", [row(odd)]))])
    (found,) = unpack(packed.index)["trajectories"][0][6]
    assert found[1] is None
    facts = [text for block in packed.blocks for text in unpack(block) if text.startswith("{")]
    assert '"speedup": "inf"' in facts[0] and '"max_error": "nan"' in facts[0]


# --- in a browser -----------------------------------------------------------------------------------------------------------


@needs_browser
def test_five_thousand_turns_fit_and_open(page: Path, tab: chromium.Page) -> None:
    assert page.stat().st_size < 10_000_000
    tab.open(page, "#view=turns")
    assert tab.texts("#count")[0] == "5,004 of 5,004 turns"
    assert len(tab.texts(".row")) < 50  # those in sight
    # Two seconds where nothing else runs; other tests may share the processors.
    assert float(tab.evaluate("document.documentElement.dataset.ready")) < 1000 * chromium.PATIENCE_SECONDS


@needs_browser
def test_filters_say_what_the_transcripts_say(page: Path, tab: chromium.Page) -> None:
    turns = [
        (row["split"], turn["evaluation"])
        for run in ("trloo-seed0", "trloo-seed1")
        for row in map(json.loads, (page.parent.parent / run / "transcripts.jsonl").read_text().splitlines())
        for turn in row["turns"]
    ]
    wanted = [
        f
        for split, f in turns
        if split == "validation" and f["status"] == "correct" and 1.5 <= f["speedup"] <= 3 and f["coverage"] >= 0.5
    ]
    tab.open(page, "#view=turns&run=arm:trloo&split=validation&status=correct&speedup=1.5-3&coverage=50-")
    assert 0 < len(wanted) < len(turns)
    assert abs(int(tab.texts("#count")[0].split()[0]) - len(wanted)) <= 1  # four digits are kept, which may round across a border
    assert all("×correct" in row and "trloo" in row for row in tab.texts(".row"))
    tab.open(page, '#view=turns&problem="level1/conv1d"')
    assert set(tab.texts(".row .name")) == {"level1/conv1d"}
    tab.open(page, "#view=turns&status=lazy&problem=level2")
    assert all("correct, lazy" in row and row.startswith("level2/") for row in tab.texts(".row"))


@needs_browser
@pytest.mark.parametrize(
    "view", ["summary", "problems", "turns", "turns&at=trloo-seed1:3.1", "turns&status=correct&sort=speedup"]
)
def test_nothing_missing_is_spelt_out(page: Path, tab: chromium.Page, view: str) -> None:
    tab.open(page, f"#view={view}")
    tab.wait_until("!location.hash.includes('at=') || document.querySelector('#turn h3')")
    assert not re.search(r"\b(null|undefined|NaN)\b|\[object", tab.evaluate("document.body.innerText"))


@needs_browser
def test_keys_walk_through_the_turns_and_the_address_follows(page: Path, tab: chromium.Page) -> None:
    tab.open(page, "#view=turns&run=run:trloo-seed1")
    tab.press("j")
    tab.shows("trloo-seed1:1.1")
    tab.press("j")
    tab.press("l")
    tab.shows("trloo-seed1:1.3")
    tab.press("h")
    tab.shows("trloo-seed1:1.2")
    tab.press("d")
    tab.wait_until("document.querySelector('.diff')")
    tab.wait_until("location.hash.includes('at=trloo-seed1%3A1.2&diff=1')")
    tab.press("/")
    tab.press("x")
    tab.wait_until("document.activeElement.id === 'filter-problem'")
    tab.wait_until("location.hash.includes('problem=x')")
    tab.press("Escape")
    tab.press("?")
    tab.wait_until("document.getElementById('keys').open")
    tab.press("Escape")
    tab.press("2")
    tab.wait_until("document.body.dataset.view === 'problems'")


@needs_browser
def test_the_difference_between_turns_is_that_of_their_lines(page: Path, tab: chromium.Page) -> None:
    line = (page.parent.parent / "grpo-seed1" / "transcripts.jsonl").read_text().splitlines()[6]
    codes = [turn["code"] for turn in json.loads(line)["turns"]]
    k = next(k for k in (1, 2) if codes[k] is not None and codes[k - 1] is not None)
    tab.open(page, f"#view=turns&at=grpo-seed1:7.{k + 1}&diff=1")
    tab.wait_until("document.querySelector('.diff')")
    tab.evaluate("document.querySelectorAll('.fold').forEach((fold) => fold.click())")
    lines = tab.texts(".diff .line")
    assert "".join(line[2:] for line in lines if line[0] in " -") == codes[k - 1] + "\n"
    assert "".join(line[2:] for line in lines if line[0] in " +") == codes[k] + "\n"
    # Seven edits of single lines, of which two may meet.
    assert 1 <= sum(line[0] == "+" for line in lines) <= 7


@needs_browser
def test_a_turn_shows_all_of_itself(page: Path, tab: chromium.Page) -> None:
    rows = [json.loads(line) for line in (page.parent.parent / "trloo-seed0" / "transcripts.jsonl").read_text().splitlines()]
    number, k = next(
        (i, k)
        for i, row in enumerate(rows, 1)
        for k, t in enumerate(row["turns"], 1)
        if k > 1 and t["evaluation"]["status"] == "correct"
    )
    row, found = rows[number - 1], rows[number - 1]["turns"][k - 1]
    tab.open(page, f"#view=turns&at=trloo-seed0:{number}.{k}")
    tab.shows(f"trloo-seed0:{number}.{k}")
    whole = tab.texts("#turn")[0]
    assert tab.texts("#turn h3") == [row["problem"]]
    assert tab.texts("#turn .py") == [found["code"]]
    plan = found["completion"].split("```")[0].strip()
    for part in (
        row["prompt"],
        plan,
        found["feedback"],
        row["turns"][k - 2]["feedback"],
        "Where the time goes",
        "fused",
        "aten.gelu",
    ):
        assert part in whole, part
    assert tab.texts("#turn .verdict")[0].startswith(
        f"correct{', lazy' if found['evaluation']['coverage'] < LAZY_COVERAGE else ''} · "
    )


@needs_browser
def test_what_a_candidate_writes_stays_text(page: Path, tab: chromium.Page) -> None:
    tab.events.clear()
    tab.open(page, "#view=turns&at=grpo-seed0:1.2&diff=1")
    tab.wait_until("document.querySelector('.diff')")
    assert tab.texts("#turn h3") == [f"level1/{many_turns.EVIL}"]
    assert sum(many_turns.EVIL in section for section in tab.texts("#turn pre")) >= 5
    assert tab.evaluate("document.title") == "Estimators"
    assert tab.evaluate("document.querySelectorAll('#turn script, #turn img, #list img').length") == 0
    tab.open(page, "#view=problems")
    assert f"level1/{many_turns.EVIL}" in tab.texts("#problems td a")
    tab.open(page, "#view=turns&at=%3Cimg%20src=x%3E&problem=%3Cb%3E&run=%22%3E")
    assert tab.texts("#turn p") == ["There is no turn <img src=x> in this page."]
    requests = [e["params"]["request"]["url"] for e in tab.events if e.get("method") == "Network.requestWillBeSent"]
    assert all(url.startswith(("about:", "data:", page.as_uri())) for url in requests)
    noise = [
        e for e in tab.events if e.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled")
    ]
    assert noise == []


@needs_browser
def test_the_policy_stops_scripts_that_are_not_ours(page: Path, tab: chromium.Page) -> None:
    tab.open(page)
    tab.evaluate("window.refused = 0; addEventListener('securitypolicyviolation', () => window.refused++)")
    tab.evaluate(
        "(() => { const s = document.createElement('script'); s.textContent = 'window.broken = 1'; document.body.append(s); })()"
    )
    tab.wait_until("window.refused === 1")
    assert tab.evaluate("window.broken === undefined")
    tab.evaluate("addEventListener('error', () => window.failed = true, true)")
    tab.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=data: onerror=\"window.broken = 1\">')")
    tab.wait_until("window.failed && window.refused === 2")
    assert tab.evaluate("window.broken === undefined")
