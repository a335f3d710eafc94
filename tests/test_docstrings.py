"""The examples in docstrings are true."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import rlkernel

ROOT = Path(rlkernel.__file__).parent.parent
FILES = [file for package in ("rlkernel", "algorithms", "envs", "experiments") for file in (ROOT / package).rglob("*.py")]
MODULES = sorted(".".join(file.relative_to(ROOT).with_suffix("").parts) for file in FILES if ">>> " in file.read_text())


@pytest.mark.parametrize("module", MODULES)
def test_examples(module: str) -> None:
    found = doctest.testmod(importlib.import_module(module))
    assert found.attempted > 0
    assert found.failed == 0
