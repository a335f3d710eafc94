"""A page of `docs/` whose code works as it stands: its files, its edits and its commands, in a copy of the checkout."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

import rlkernel
from tests import forked

ROOT = Path(rlkernel.__file__).parent.parent
PYTEST_OPTIONS = "-p no:cacheprovider -W ignore::pytest.PytestAssertRewriteWarning"
"""The libraries are imported before pytest could rewrite them."""


@dataclass(frozen=True)
class Page:
    """A page of `docs/` by its name."""

    name: str

    @property
    def blocks(self) -> list[tuple[str, str]]:
        """(language, text) of every block of code."""
        text = (ROOT / "docs" / self.name).read_text(encoding="utf-8")
        return re.findall(r"^```(\w+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)

    def named(self, language: str) -> list[tuple[str, str]]:
        """(path, text) of the blocks whose first line is a comment with a path."""
        return [tuple(text.removeprefix("# ").split("\n", 1)) for kind, text in self.blocks if kind == language]  # type: ignore[misc]

    @property
    def commands(self) -> list[str]:
        """The lines of its shell blocks."""
        return [line for kind, text in self.blocks if kind == "sh" for line in text.splitlines()]

    def checkout(self, copy: Path) -> Path:
        """Make a copy of the checkout with the page's files and edits."""
        for package in ("rlkernel", "algorithms", "envs", "experiments", "examples", "docs", "tests/algorithms", "tests/envs"):
            shutil.copytree(ROOT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__", "*.png"))
        for name in ("pyproject.toml", "README.md", "tests/conftest.py", "tests/test_pages.py"):
            (copy / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, copy / name)
        for path, text in self.named("python"):
            assert not (copy / path).exists(), path
            (copy / path).write_text(text)
        for path, difference in self.named("diff"):
            (copy / path).write_text(edit((copy / path).read_text(), difference))
        return copy


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


def execute(command: str, checkout: Path) -> str:
    """What a command of the page prints in the copy; it must succeed."""
    python, *rest = shlex.split(command)
    assert python == "python"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "WANDB_MODE": "disabled", "PYTEST_ADDOPTS": PYTEST_OPTIONS}
    environment.pop("PYTEST_XDIST_WORKER", None)
    done = forked.run(rest, cwd=checkout, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return str(done.stdout)
