"""Sizes that are remembered: found once, and again when anything that they depend on has changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from envs import size_store
from envs.size_store import fit_all
from rlkernel.evaluator.devices import H200
from rlkernel.evaluator.judging.sizes.fitting import Fitted, Unfit
from rlkernel.types import Problem

SOURCE = """import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1
shape = (2048, 512)
def get_inputs():
    return [torch.rand(*shape)]
def get_init_inputs():
    return []
"""
PROBLEMS = [Problem("level1/a", 1, "train", SOURCE), Problem("level1/b", 1, "train", SOURCE.replace("x + 1", "x.item()"))]


def test_found_once_and_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "new" / "sizes.jsonl"
    first = fit_all(PROBLEMS, H200, None, store)
    assert isinstance(first[0], Fitted) and first[0].compared == {"shape": [512, 256]}
    assert "shape = (512, 256)" not in first[0].problem.source and "(512, 256)" in first[0].problem.source
    assert isinstance(first[1], Unfit)
    store.write_text(store.read_text() + '{"key": "torn')
    counted: list[str] = []
    monkeypatch.setattr(size_store, "fit_for_cpu", lambda problem, profile: counted.append(problem.name))
    done: list[int] = []
    assert fit_all(PROBLEMS, H200, None, store, lambda: done.append(1)) == first
    assert counted == [] and len(done) == 2


def test_another_file_or_memory_is_counted_anew(tmp_path: Path) -> None:
    store = tmp_path / "sizes.jsonl"
    fit_all(PROBLEMS[:1], H200, None, store)
    (larger,) = fit_all([Problem("level1/a", 1, "train", SOURCE.replace("2048", "64"))], H200, None, store)
    assert isinstance(larger, Fitted) and larger.compared == {}
    (gpu,) = fit_all(PROBLEMS[:1], H200, 1 << 40, store)
    assert gpu == Fitted(PROBLEMS[0], {}, {})
    assert len(store.read_text().splitlines()) == 3
