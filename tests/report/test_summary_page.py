"""The summary of a report as a browser shows it: its first line, what fits, what sorts, what a cursor reads, and its colours."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.report import chromium

pytestmark = pytest.mark.skipif(chromium.FOUND is None, reason="browser tests (install chromium)")
INSIDE = """[...document.querySelectorAll('#result td, #result th, #differences td, #claims td')].filter((cell) => {
  const box = cell.getBoundingClientRect();
  return box.width && (box.left < 0 || box.right > document.documentElement.clientWidth + 0.5);
}).length"""


@pytest.mark.parametrize("width", [1400, 390])
def test_all_columns_of_the_result_are_visible(page: Path, tab: chromium.Page, width: int) -> None:
    tab.size(width, 900)
    tab.open(page)
    assert tab.evaluate(INSIDE) == 0
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    cells = tab.evaluate("[...document.querySelector('#result tbody tr').cells].map((cell) => cell.offsetParent !== null)")
    assert cells == [True] * 9  # arm, seeds, steps, six metrics
    if width == 390:  # a heading is beside every value
        shown = tab.evaluate(
            "[...document.querySelectorAll('#result tr:nth-child(1) td[data-label]')]"
            ".map((cell) => getComputedStyle(cell, '::before').content)"
        )
        assert shown[:3] == ['"Seeds"', '"Steps"', '"Reward"'] and len(shown) == 8
    tab.open(page, "#view=problems")
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_first_line_is_the_finding_and_claims_without_runs_are_folded(page: Path, tab: chromium.Page) -> None:
    tab.size(1400, 900)
    tab.open(page)
    first = tab.evaluate("document.getElementById('summary').innerText.split('\\n')[0]")
    assert first.startswith("trloo against grpo in Fast@1: ") and "by 2 seeds (difference " in first
    assert tab.texts("#claims tbody td.lead") == ["TRLOO above GRPOtrloo against grpo, fast_1"]
    assert tab.evaluate("document.querySelector('#folded li').checkVisibility({ contentVisibilityAuto: true })") is False
    tab.evaluate("document.querySelector('#folded summary').click()")
    assert "RLOO above GRPO" in tab.evaluate("document.querySelector('#folded').innerText")


def test_tables_sort_by_a_click_both_ways(page: Path, tab: chromium.Page) -> None:
    tab.size(1400, 900)
    tab.open(page)
    arms = "#result tbody td.lead"
    assert tab.texts(arms) == ["grpo", "trloo"]
    for wanted in (["grpo", "trloo"], ["trloo", "grpo"]):
        tab.evaluate("document.querySelector('#result th:nth-child(1) button').click()")
        assert tab.texts(arms) == wanted
    last = "[...document.querySelectorAll('#result tbody td:nth-child(4)')].map((cell) => Number(cell.dataset.sort))"
    tab.evaluate("document.querySelector('#result th:nth-child(4) button').click()")
    values = tab.evaluate(last)
    assert values == sorted(values) and len(set(values)) == 2
    assert tab.evaluate("document.querySelector('#result th:nth-child(4)').getAttribute('aria-sort')") == "ascending"
    tab.evaluate("document.querySelector('#result th:nth-child(4) button').click()")
    assert tab.evaluate(last) == sorted(values, reverse=True)


def test_problems_of_the_validation_are_told_from_those_of_the_training(page: Path, tab: chromium.Page) -> None:
    rows = [
        json.loads(line)
        for run in ("grpo-seed0", "grpo-seed1", "trloo-seed0", "trloo-seed1")
        for line in (page.parent.parent / run / "transcripts.jsonl").read_text().splitlines()
    ]
    held = {row["problem"] for row in rows if row["split"] == "validation"}
    tab.size(1400, 900)
    tab.open(page, "#view=problems")
    heads = tab.texts("#problems h2")
    assert heads[0].startswith("Validation problems (")
    assert held <= set(tab.texts("#problems .measured td.lead"))
    assert not held & set(tab.texts("#problems .trained td.lead"))
    best = "[...document.querySelectorAll('#problems .measured tbody td:nth-child(4)')].map((cell) => cell.dataset.sort)"
    tab.evaluate("document.querySelector('#problems .measured tr:last-child th:nth-child(4) button').click()")
    found = [float(value) for value in tab.evaluate(best) if value]
    assert found == sorted(found) and len(found) > 10


def test_a_cursor_reads_the_values_of_a_chart(page: Path, tab: chromium.Page) -> None:
    rows = {
        run: [json.loads(line) for line in (page.parent.parent / run / "metrics.jsonl").read_text().splitlines()]
        for run in ("grpo-seed0", "grpo-seed1")
    }
    tab.size(1400, 900)
    tab.open(page)
    titles = tab.evaluate("[...document.querySelectorAll('#training-charts figcaption')].map((node) => node.firstChild.data)")
    assert titles == [
        "Loss", "Entropy, nats per token", "Gradient norm", "Mismatch of log-probabilities", "Spread of reward within groups",
        "Groups without spread",
    ]  # fmt: skip
    loss = "document.querySelector('#training-charts svg')"
    tab.evaluate(f"{loss}.scrollIntoView()")
    left, top, width, height = tab.evaluate(
        f"(({{x, y, width, height}}) => [x, y, width, height])({loss}.getBoundingClientRect())"
    )
    # Step 20 is at the right end of the plot, at 428 of 440.
    tab.call("Input.dispatchMouseEvent", type="mouseMoved", x=left + width * 428 / 440, y=top + height / 2)
    tab.wait_until("document.querySelector('.reading')")
    losses = [row["loss"] for of in rows.values() for row in of if row["split"] == "train" and row["step"] == 20]
    assert tab.texts(".reading div")[:2] == ["step 20", f"grpo{sum(losses) / 2:.4g}"]
    tab.call("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)
    tab.wait_until("!document.querySelector('.reading')")
    tab.evaluate(f"{loss}.focus()")
    tab.press("ArrowRight")
    tab.press("ArrowRight")
    assert tab.texts(".reading div")[0] == "step 2"


def test_figures_follow_the_colours_of_the_page(page: Path, tab: chromium.Page) -> None:
    def colours() -> list[str]:
        found: list[str] = tab.evaluate(
            "[['svg .mean', 'stroke'], ['svg text', 'fill'], ['svg .grid', 'stroke'], ['body', 'backgroundColor']]"
            ".map(([selector, name]) => getComputedStyle(document.querySelector(selector))[name])"
        )
        return found

    seen = []
    for dark in (False, True):
        tab.size(1400, 900, dark=dark)
        tab.open(page)
        seen.append(colours())
    assert seen[0][0] == "rgb(0, 114, 178)" and seen[0][3] == "rgb(255, 255, 255)"
    assert seen[1][0] == "rgb(74, 168, 224)" and seen[1][3] == "rgb(22, 24, 28)"
    assert all(light != dark for light, dark in zip(*seen, strict=True))
    assert tab.evaluate("document.querySelectorAll('img').length") == 0


def test_the_page_asks_nobody(page: Path, tab: chromium.Page) -> None:
    tab.events.clear()
    for view in ("", "#view=problems", "#view=turns"):
        tab.open(page, view)
    requests = [e["params"]["request"]["url"] for e in tab.events if e.get("method") == "Network.requestWillBeSent"]
    assert requests and all(url.startswith(("about:", "data:", page.as_uri())) for url in requests)
    assert not [e for e in tab.events if e.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown")]
