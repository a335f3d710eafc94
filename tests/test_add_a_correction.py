"""The code of `docs/add_a_correction.md` works as it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.executed_page import Page, execute

PAGE = Page("add_a_correction.md")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return PAGE.checkout(tmp_path_factory.mktemp("checkout"))


def test_the_page_has_what_it_promises() -> None:
    files = dict(PAGE.named("python"))
    assert files.keys() == {"algorithms/flattened.py", "tests/algorithms/test_flattened.py", "experiments/flattened.py"}
    # One file of at most 30 lines, one line in each table besides its import, one row on the page of papers.
    assert len(files["algorithms/flattened.py"].splitlines()) <= 30
    assert [difference.count("\n+") for _, difference in PAGE.named("diff")] == [1, 2, 1]
    assert len(PAGE.commands) == 2


@pytest.mark.parametrize("command", PAGE.commands, ids=lambda command: " ".join(command.split()[2:5]))
def test_commands(command: str, checkout: Path) -> None:
    printed = execute(command, checkout)
    if "--list" in command:
        assert "Flattened(level=token, power=0.5)" in printed
        assert "TIS(level=token, low=0.0, high=2.0)" in printed
    else:
        assert "passed" in printed
        assert "tests/test_pages.py" in command  # whose row of the page of papers every registered method needs
