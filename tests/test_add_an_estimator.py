"""The code of `docs/add_an_estimator.md` works as it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.executed_page import Page, execute

PAGE = Page("add_an_estimator.md")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return PAGE.checkout(tmp_path_factory.mktemp("checkout"))


def test_the_page_has_what_it_promises() -> None:
    files = dict(PAGE.named("python"))
    assert {"algorithms/mean_abs.py", "algorithms/log_speed.py", "envs/terse_env.py", "experiments/mean_abs.py"} < files.keys()
    # One file of at most 30 lines, one line in the table besides its import.
    assert len(files["algorithms/mean_abs.py"].splitlines()) <= 30
    lines = {path: [text.count("\n+") for own, text in PAGE.named("diff") if own == path] for path, _ in PAGE.named("diff")}
    # One line each for the estimator and for the reward in the registry and on the page of papers; arms and their imports.
    assert lines == {"algorithms/__init__.py": [1, 1], "docs/papers.md": [1, 1], "experiments/mean_abs.py": [2, 2]}
    assert len(PAGE.commands) == 5


@pytest.mark.parametrize("command", PAGE.commands, ids=lambda command: " ".join(command.split()[2:5]))
def test_commands(command: str, checkout: Path) -> None:
    printed = execute(command, checkout)
    if "--steps" in command:
        assert "report: runs/mean_abs/report.html" in printed
        assert (checkout / "runs" / "mean_abs" / "report.html").exists()
    elif "--list" in command:
        assert "MeanAbs(eps=1e-06)" in printed
        assert "LogSpeed(weight=0.5)" in printed
    else:
        assert "passed" in printed
