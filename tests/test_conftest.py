"""The tests' own configuration: which tests are slow, which come first, what is said of those that were left out."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

QUICK = """
import pytest
def test_plain(): pass
def test_with_an_evaluator(pool): pass
@pytest.mark.slow
def test_that_trains_by_a_command(): pass
@pytest.mark.gpu
def test_on_a_card(): pass
@pytest.fixture
def pool(): pass
"""
STARTS = """
import subprocess
import pytest
def test_a_command(): pass
@pytest.mark.skipif(True, reason="browser tests (install chromium)")
@pytest.mark.parametrize("view", [1, 2])
def test_a_page(view): pass
"""
GPU = "1 GPU tests (make test-gpu on an NVIDIA GPU)"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    gpu\n    slow\n")
    (tmp_path / "test_a_quick.py").write_text(QUICK)
    (tmp_path / "test_b_starts.py").write_text(STARTS)
    return tmp_path


def lines(directory: Path, *arguments: str) -> list[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("workers", [(), ("-n", "2", "--dist", "worksteal")], ids=["alone", "in parallel"])
def test_the_last_line_says_what_was_not_run_and_what_would_run_it(directory: Path, workers: tuple[str, ...]) -> None:
    *_, closing, last = lines(directory, *workers, "-m", "not gpu")
    assert "4 passed, 2 skipped" in closing
    assert last == f"not run: 2 browser tests (install chromium), {GPU}"


def test_the_fast_tests_start_no_process_and_train_nothing(directory: Path) -> None:
    *_, closing, last = lines(directory, "-m", "not gpu and not slow")
    assert "1 passed, 6 deselected" in closing
    assert last == f"not run: 5 slow tests (make test), {GPU}"


def test_nothing_is_said_where_everything_was_run(directory: Path) -> None:
    assert "1 passed" in lines(directory, "test_a_quick.py::test_plain")[-1]


def test_what_starts_processes_comes_first(directory: Path) -> None:
    collected = [line for line in lines(directory, "--collect-only", "-q", "-m", "not gpu") if "::" in line]
    assert [line.partition("::")[0] for line in collected] == ["test_b_starts.py"] * 3 + ["test_a_quick.py"] * 3
