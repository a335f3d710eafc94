"""The code of `docs/add_an_estimator.md` works as it stands: its files, its edits and its commands, in a copy of the checkout."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

import rlkernel
from tests import forked

ROOT = Path(rlkernel.__file__).parent.parent
PAGE = (ROOT / "docs" / "add_an_estimator.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def named(language: str) -> list[tuple[str, str]]:
    """(path, text) of the blocks whose first line is a comment with a path."""
    return [tuple(text.removeprefix("# ").split("\n", 1)) for kind, text in BLOCKS if kind == language]  # type: ignore[misc]


COMMANDS = [line for kind, text in BLOCKS if kind == "sh" for line in text.splitlines()]
PYTEST_OPTIONS = "-p no:cacheprovider -W ignore::pytest.PytestAssertRewriteWarning"
"""The libraries are imported before pytest could rewrite them."""


def edit(text: str, difference: str) -> str:
    """Insert each line with a plus after the line that stands before it. Raises ValueError when that is not there."""
    lines = text.split("\n")
    at = 0
    for line in difference.rstrip("\n").split("\n"):
        if line.startswith("+"):
            at += 1
            lines.insert(at, line[1:])
        else:
            at = lines.index(line[1:], at)
    return "\n".join(lines)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("checkout")
    for package in ("rlkernel", "algorithms", "envs", "experiments"):
        shutil.copytree(ROOT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("tests/algorithms", "tests/envs"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "tests/conftest.py"):
        shutil.copy(ROOT / name, copy / name)
    for path, text in named("python"):
        assert not (copy / path).exists(), path
        (copy / path).write_text(text)
    for path, difference in named("diff"):
        (copy / path).write_text(edit((copy / path).read_text(), difference))
    return copy


def test_the_page_has_what_it_promises() -> None:
    files = dict(named("python"))
    assert {"algorithms/mean_abs.py", "algorithms/log_speed.py", "envs/terse_env.py", "experiments/mean_abs.py"} < files.keys()
    # One file of at most 30 lines, one line in the table besides its import.
    assert len(files["algorithms/mean_abs.py"].splitlines()) <= 30
    assert all(difference.count("\n+") == 2 for _, difference in named("diff"))
    assert len(COMMANDS) == 5


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command.split()[2:5]))
def test_commands(command: str, checkout: Path) -> None:
    python, *rest = shlex.split(command)
    assert python == "python"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "WANDB_MODE": "disabled", "PYTEST_ADDOPTS": PYTEST_OPTIONS}
    environment.pop("PYTEST_XDIST_WORKER", None)
    done = forked.run(rest, cwd=checkout, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    if "--steps" in rest:
        assert "report: runs/mean_abs/report.html" in done.stdout
        assert (checkout / "runs" / "mean_abs" / "report.html").exists()
    elif "--list" in rest:
        assert "MeanAbs(eps=1e-06)" in done.stdout
        assert "LogSpeed(weight=0.5)" in done.stdout
    else:
        assert "passed" in done.stdout
