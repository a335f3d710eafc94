"""The page on refused kernels: every status has its section, and what is quoted is what the evaluator says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rlkernel.types import Status

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/refused.md").read_text()
SOURCES = "\n".join(path.read_text() for path in sorted((ROOT / "rlkernel").rglob("*.py")))
SAID = re.sub(r'"\s*\n\s*f?"', "", SOURCES)
"""The sources with strings that go over several lines in one piece."""
BUILT = ("ModelNew", "compiling", "running the kernels", "tracing ModelNew", "reads", "writes", "output", "us is less than")
"""What the evaluator puts into its sentences."""


def quoted() -> list[str]:
    """What the bullets quote of the evaluator before they explain it."""
    bullets = [" ".join(bullet.split()) for bullet in re.split(r"\n- |\n\n", PAGE.split("## no_code")[1])]
    heads = [re.match(r"(`[^`]+`(?:, (?:or )?)?)+", bullet) for bullet in bullets]
    return [text for head in heads if head is not None for text in re.findall(r"`([^`]+)`", head[0])]


def test_every_status_has_its_section() -> None:
    assert {line.removeprefix("## ") for line in PAGE.splitlines() if line.startswith("## ")} == {
        *(status for status in Status if status is not Status.CORRECT),
        "correct, and yet",
    }


@pytest.mark.parametrize("text", quoted())
def test_what_is_quoted_is_in_the_evaluator(text: str) -> None:
    words = "|".join(map(re.escape, BUILT))
    pieces = [piece.strip(" :.;(") for piece in re.split(rf"<[^>]*>|\b(?:{words})\b", text)]
    assert all(piece in SAID for piece in pieces), pieces
