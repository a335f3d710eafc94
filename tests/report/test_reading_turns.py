"""What a reader does with turns in a browser: searches, mistypes, goes back, copies, compares arms, and leaves notes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.report import chromium

pytestmark = pytest.mark.skipif(chromium.FOUND is None, reason="browser tests (install chromium)")


def transcripts(page: Path, run: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (page.parent.parent / run / "transcripts.jsonl").read_text().splitlines()]


def type_into(tab: chromium.Page, selector: str, words: str) -> None:
    tab.evaluate(
        f"((field) => {{ field.focus(); field.value = {json.dumps(words)}; field.dispatchEvent(new Event('input')); }})"
        f"(document.querySelector({json.dumps(selector)}))"
    )


def count(tab: chromium.Page) -> int:
    return int(tab.texts("#count")[0].split()[0].replace(",", ""))


def test_the_search_finds_every_answer_with_the_words(page: Path, tab: chromium.Page) -> None:
    runs = ("grpo-seed0", "grpo-seed1", "trloo-seed0", "trloo-seed1")
    words = "tl.maximum"
    wanted = sum(words in turn["completion"].lower() for run in runs for row in transcripts(page, run) for turn in row["turns"])
    tab.open(page, "#view=turns")
    type_into(tab, "#filter-text", words.upper())
    tab.wait_until(
        "((said) => / of 5,004 turns$/.test(said) && !said.startsWith('5,004'))(document.getElementById('count').textContent)"
    )
    assert count(tab) == wanted > 0
    tab.wait_until("location.hash.includes('text=TL.MAXIMUM')")
    tab.open(page, f"#view=turns&text={words}&run=run:trloo-seed1&at=trloo-seed1:1.1")
    tab.shows("trloo-seed1:1.1")
    tab.wait_until("document.getElementById('count').textContent.endsWith('of 5,004 turns')")
    assert count(tab) == sum(words in turn["completion"] for row in transcripts(page, "trloo-seed1") for turn in row["turns"])


@pytest.mark.parametrize(
    ("key", "typed", "bad"),
    [
        ("speedup", "fast", True),
        ("speedup", "1-2-3", True),
        ("speedup", "3-1", True),
        ("coverage", "30%", True),
        ("step", "-", True),
        ("step", "1-2", False),
        ("speedup", "1.2-", False),
        ("coverage", "-30", False),
        ("speedup", "", False),
    ],
)
def test_a_filter_that_cannot_be_understood_turns_red(page: Path, tab: chromium.Page, key: str, typed: str, bad: bool) -> None:
    tab.open(page, "#view=turns")
    usual = tab.evaluate("getComputedStyle(document.getElementById('filter-problem')).borderColor")
    type_into(tab, f"#filter-{key}", typed)
    found = tab.evaluate(
        f"((field) => [field.getAttribute('aria-invalid'), getComputedStyle(field).borderColor])"
        f"(document.getElementById('filter-{key}'))"
    )
    assert found[0] == str(bad).lower() and (found[1] != usual) is bad
    assert ("is no range and filters nothing" in tab.texts("#count")[0]) is bad
    assert (count(tab) == 5004) is (bad or not typed)


def test_back_goes_one_turn_back(page: Path, tab: chromium.Page) -> None:
    tab.open(page, "#view=turns&run=run:trloo-seed1")
    for k in (1, 2, 3):
        tab.press("j")
        tab.shows(f"trloo-seed1:1.{k}")
    for k in (2, 1):
        tab.evaluate("history.back()")
        tab.shows(f"trloo-seed1:1.{k}")
    tab.evaluate("history.back()")
    tab.wait_until("!document.body.classList.contains('reading')")
    tab.evaluate("history.forward()")
    tab.shows("trloo-seed1:1.1")


def test_a_button_copies_the_code(page: Path, tab: chromium.Page) -> None:
    rows = transcripts(page, "trloo-seed0")
    number = next(i for i, row in enumerate(rows, 1) if row["turns"][0]["code"])
    tab.open(page, f"#view=turns&at=trloo-seed0:{number}.1")
    tab.shows(f"trloo-seed0:{number}.1")
    # What reaches the clipboard, without asking the machine for one.
    tab.evaluate("navigator.clipboard.writeText = (words) => { window.copied = words; return Promise.resolve(); }")
    tab.evaluate(
        "[...document.querySelectorAll('#turn h4')].find((h) => h.firstChild.data === 'Code').querySelector('.copy').click()"
    )
    tab.wait_until("window.copied")
    assert tab.evaluate("window.copied") == rows[number - 1]["turns"][0]["code"]
    tab.wait_until("document.querySelector('#turn').textContent.includes('copied')")


def test_differences_have_the_colours_of_code(page: Path, tab: chromium.Page) -> None:
    rows = transcripts(page, "grpo-seed1")
    number = next(i for i, row in enumerate(rows, 1) if all(turn["code"] for turn in row["turns"][:2]))
    tab.open(page, f"#view=turns&at=grpo-seed1:{number}.2&diff=1")
    tab.wait_until("document.querySelector('.diff')")
    tab.evaluate("document.querySelectorAll('.fold').forEach((fold) => fold.click())")
    assert "import" in tab.texts(".diff .line .k")
    changed = tab.texts(".diff .new .c")
    assert changed and all(comment.startswith("#") for comment in changed)


def test_two_arms_answer_side_by_side(page: Path, tab: chromium.Page) -> None:
    theirs = transcripts(page, "trloo-seed0")
    problems = {row["problem"] for row in theirs if row["split"] == "validation"}
    mine = transcripts(page, "grpo-seed0")
    number, row = next(
        (i, row)
        for i, row in enumerate(mine, 1)
        if i > 1 and row["split"] == "validation" and row["problem"] in problems and row["turns"][1]["code"]
    )
    tab.open(page, f"#view=turns&at=grpo-seed0:{number}.2")
    tab.shows(f"grpo-seed0:{number}.2")
    assert tab.texts("#beside option") == ["this answer alone", "beside trloo"]
    tab.press("b")
    tab.wait_until("document.querySelectorAll('.pair .answer').length === 2")
    left, right = tab.evaluate("[...document.querySelectorAll('.pair .answer')].map((node) => node.dataset.at)")
    assert left == f"grpo-seed0:{number}.2"
    run, place = right.split(":")
    other = theirs[int(place.split(".")[0]) - 1]
    # The nearest: a validation, the same seed, the same turn, and no measurement of the problem at a nearer step.
    assert (run, other["problem"], other["split"], place.split(".")[1]) == ("trloo-seed0", row["problem"], "validation", "2")
    steps = [r["step"] for r in theirs if r["problem"] == row["problem"] and r["split"] == "validation"]
    assert abs(other["step"] - row["step"]) == min(abs(step - row["step"]) for step in steps)
    boxes = tab.evaluate("[...document.querySelectorAll('.pair .answer')].map((node) => node.getBoundingClientRect().left)")
    assert boxes[0] < boxes[1]
    tab.wait_until(f"location.hash.includes('beside={run}%3A')")
    codes = [row["turns"][1]["code"], other["turns"][1]["code"]]
    if all(codes):  # the difference is then the one between the two answers
        tab.press("d")
        tab.wait_until("document.querySelector('.diff')")
        tab.evaluate("document.querySelectorAll('.fold').forEach((fold) => fold.click())")
        lines = tab.texts(".diff .line")
        for sides, code in ((" -", codes[1]), (" +", codes[0])):
            assert "".join(line[2:] for line in lines if line[0] in sides) == code + "\n"
        tab.evaluate("history.back()")
        tab.wait_until("!document.querySelector('.diff')")
    tab.evaluate("history.back()")
    tab.wait_until("!document.querySelector('.pair')")


def test_notes_stay_in_the_browser_and_go_out_as_json(page: Path, tab: chromium.Page, tmp_path: Path) -> None:
    tab.open(page, "#view=turns&at=trloo-seed1:2.1")
    tab.shows("trloo-seed1:2.1")
    assert tab.evaluate("document.getElementById('export-notes').hidden")
    type_into(tab, "#note", "fuses <b>two</b> steps")
    tab.wait_until("!document.getElementById('export-notes').hidden")
    tab.open(page, "#view=turns&at=trloo-seed1:2.1")  # loaded anew
    tab.shows("trloo-seed1:2.1")
    assert tab.evaluate("document.getElementById('note').value") == "fuses <b>two</b> steps"
    assert tab.texts("#export-notes") == ["Export 1 note"]
    tab.open(page, "#view=turns&status=noted")
    assert tab.texts("#count") == ["1 of 5,004 turns"] and tab.texts(".row .name")[0].startswith("✎ ")
    tab.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    tab.evaluate("document.getElementById('export-notes').click()")
    tab.wait_for(lambda: (tmp_path / "notes.json").is_file())
    found = json.loads((tmp_path / "notes.json").read_text())
    row = transcripts(page, "trloo-seed1")[1]
    (note,) = found["notes"]
    assert found["title"] == "Estimators" and note.pop("when").startswith("20")
    assert note == {
        "at": "trloo-seed1:2.1", "run": "trloo-seed1", "arm": "trloo", "seed": 1, "problem": row["problem"], "step": row["step"],
        "turn": 1, "status": row["turns"][0]["evaluation"]["status"], "note": "fuses <b>two</b> steps",
    }  # fmt: skip
    tab.open(page, "#view=turns&at=trloo-seed1:2.1")
    tab.shows("trloo-seed1:2.1")
    type_into(tab, "#note", "")
    assert tab.evaluate("document.getElementById('export-notes').hidden")
