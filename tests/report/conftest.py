"""A report of 5,004 turns, and a tab of a headless browser to read it in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rlkernel.report.claims import Claim
from rlkernel.report.report import Story, write_report
from tests.report import chromium, many_turns

CLAIMS = (
    Claim("TRLOO above GRPO", "trloo", "grpo", "fast_1", "a few points"),
    Claim("RLOO above GRPO", "rloo", "grpo", "fast_1", ""),
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of 4 runs; the first trajectory is hostile."""
    base = tmp_path_factory.mktemp("viewer")
    runs = [
        many_turns.write_run(base / f"{arm}-seed{seed}", arm, seed, 417, evil=(arm, seed) == ("grpo", 0))
        for arm in ("grpo", "trloo")
        for seed in (0, 1)
    ]
    return write_report(base / "out", Story("Estimators", "The claim.", CLAIMS), runs)


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Page]:
    with chromium.chromium(tmp_path_factory.mktemp("profile")) as tab:
        tab.size(1280, 800)
        yield tab
