"""The experiment's module is a command."""

from __future__ import annotations

from tests import forked


def test_module_is_a_command() -> None:
    listed = forked.run(["-m", "experiments.multi_turn_estimators", "--list"])
    assert listed.returncode == 0, listed.stderr
    rows = [line.split()[0] for line in listed.stdout.splitlines() if line[0] != " "]
    assert rows == ["arm", "grpo", "trloo", "rloo", "grpo_single_turn"]
