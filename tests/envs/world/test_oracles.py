from __future__ import annotations

from pathlib import Path

import pytest

from envs.world import suite
from envs.world.oracles import load_oracles, store
from envs.world.suite import validation_tasks, world_problems
from rlkernel.types import Oracle


def test_cards_are_kept_apart_and_rows_are_replaced(tmp_path: Path) -> None:
    table = tmp_path / "oracles.json"
    assert load_oracles(table) == {}
    store("h200", "modelled", {"a": {"speedup": 2.0, "points": 144}}, table)
    store("NVIDIA H200", "measured", {"a": {"speedup": 1.7}, "b": {"speedup": 1.2}}, table)
    store("NVIDIA H200", "measured", {"b": {"speedup": 1.4}}, table)
    assert load_oracles(table) == {
        "a": (Oracle("h200", "modelled", 2.0), Oracle("NVIDIA H200", "measured", 1.7)),
        "b": (Oracle("NVIDIA H200", "measured", 1.4),),
    }


def test_validation_problems_carry_their_oracles_and_training_problems_none(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {validation_tasks(["row"])[0].name: (Oracle("NVIDIA H200", "measured", 3.0),)}
    monkeypatch.setattr(suite, "load_oracles", lambda: known)
    found = {problem.name: problem.oracles for problem in world_problems(["row"])}
    assert {name: oracles for name, oracles in found.items() if oracles} == known
