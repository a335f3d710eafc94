"""Two policies of one command are told apart by their weights."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import save_file

from rlkernel.runs.weights import weights_digest


def test_weights_of_one_shape_are_told_apart_and_a_copy_is_the_same(tmp_path: Path) -> None:
    for name, seed in (("one", 0), ("copy", 0), ("other", 1)):
        (tmp_path / name).mkdir()
        save_file({"weight": torch.full((4, 4), float(seed))}, tmp_path / name / "model.safetensors")
        (tmp_path / name / "config.json").write_text(name)  # which is not what was trained
    found = {name: weights_digest(str(tmp_path / name)) for name in ("one", "copy", "other")}
    assert found["one"] == found["copy"] != found["other"]
    assert found["one"] is not None and len(found["one"]) == 16


def test_weights_that_differ_behind_the_first_ones_are_told_apart(tmp_path: Path) -> None:
    """The rows of an embedding that no training has reached are alike, and what lies behind them is not."""
    for name, trained in (("one", 0.0), ("other", 1.0)):
        (tmp_path / name).mkdir()
        weights = {"a_embedding": torch.zeros(2 << 20), "b_layer": torch.full((1 << 18,), trained)}
        save_file(weights, tmp_path / name / "model.safetensors")
    assert weights_digest(str(tmp_path / "one")) != weights_digest(str(tmp_path / "other"))


def test_what_is_no_directory_of_weights_has_none(tmp_path: Path) -> None:
    assert weights_digest("small") is None and weights_digest(str(tmp_path)) is None
