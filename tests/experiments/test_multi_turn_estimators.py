"""The experiment's module is a command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_module_is_a_command() -> None:
    command = [sys.executable, "-m", "experiments.multi_turn_estimators", "--list"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert listed.returncode == 0, listed.stderr
    rows = [line.split()[0] for line in listed.stdout.splitlines() if line[0] != " "]
    assert rows == ["arm", "grpo", "trloo", "rloo", "grpo_single_turn"]
