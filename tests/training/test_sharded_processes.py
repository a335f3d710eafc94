"""Processes that hold pieces of the weights train what one process trains, also when one is killed and more go on."""

from __future__ import annotations

import json
import re
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate.commands.launch import _validate_launch_command, launch_command_parser
from accelerate.utils.launch import prepare_multi_gpu_env
from safetensors.torch import load_file
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

from rlkernel.config import Run
from rlkernel.errors import UsageError
from rlkernel.training import sharding
from tests import forked
from tests.training.sharded_processes import VARIABLES
from tests.training.test_several_processes import rows, said


def weights(directory: Path) -> dict[str, torch.Tensor]:
    """The weights of the second checkpoint, whole."""
    checkpoint = directory / "checkpoints" / "checkpoint-2"
    for name in ("model.safetensors", "adapter_model.safetensors"):
        if (checkpoint / name).exists():
            return load_file(checkpoint / name)
    dcp_to_torch_save(checkpoint / "pytorch_model_fsdp_0", directory / "whole.pt")
    found: dict[str, torch.Tensor] = torch.load(directory / "whole.pt")["model"]
    return {name: tensor for name, tensor in found.items() if name != "lm_head.weight"}  # tied


def check_equal(pieces: Path, one: Path, tolerance: float = 2e-6) -> None:
    """But for the order of sums."""
    assert len(rows(pieces)) == len(rows(one)) == 4
    for ours, theirs in zip(rows(pieces), rows(one), strict=True):
        assert ours.keys() == theirs.keys()
        for name, value in theirs.items():
            assert ours[name] == (pytest.approx(value, rel=1e-5, abs=1e-5) if isinstance(value, float) else value), name
    found, expected = weights(pieces), weights(one)
    assert found.keys() == expected.keys()
    torch.testing.assert_close(found, expected, rtol=0, atol=tolerance)  # an update moves them by 1e-4


@pytest.mark.slow
def test_processes_with_pieces_train_what_one_trains(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    tiny_model.save_pretrained(tmp_path / "model")
    tiny_tokenizer.save_pretrained(tmp_path / "model")
    done = forked.run([Path("tests/training/sharded_processes.py"), tmp_path / "model", tmp_path])
    assert done.returncode == 0, done.stderr
    attempts = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(attempt["attempt"], attempt["statuses"]) for attempt in attempts] == [
        ("one", [0]),
        ("one, ahead", [0]),
        ("one, told by the loss", [0]),
        ("two, told by the loss", [0, 0]),
        ("one, adapters", [0]),
        ("in pieces, told by the loss", [0, 0, 0, 0]),
        ("in pieces", [0, 0]),
        ("in pieces", [0, 0, 0, 0]),
        ("in pieces, ahead", [0, 0]),
        ("another is killed", [2, -signal.SIGKILL]),
        ("in pieces, adapters", [0, 0]),
        ("another with adapters is killed", [2, -signal.SIGKILL]),
        ("adapters go on", [0, 0]),
        ("goes on", [0, 0]),
        ("goes on with more", [0, 0, 0]),
    ], said(tmp_path / "pieces2", 0) + said(tmp_path / "pieces2", 1)
    for pieces in ("pieces2", "pieces4", "grown"):
        check_equal(tmp_path / pieces, tmp_path / "one")
    check_equal(tmp_path / "ahead2", tmp_path / "ahead1")
    for several in ("told2", "told4"):
        check_equal(tmp_path / several, tmp_path / "told1")
    told = [row for row in rows(tmp_path / "told1") if row["split"] == "train"]
    assert all(row["mismatch"] > 1e-3 and row["kept_tokens"] < 1 for row in told) and told[1]["kl_reference"] > 0
    trained = [row for row in rows(tmp_path / "pieces2") if row["split"] == "train"]
    assert all(0.2 < row["kept_tokens"] < 1 and row["grad_norm"] > 0.1 for row in trained)
    # No process has written the whole: each its own piece.
    pieces = tmp_path / "pieces4" / "checkpoints" / "checkpoint-2"
    assert {path.name for path in (pieces / "optimizer_0").glob("*.distcp")} == {f"__{rank}_0.distcp" for rank in range(4)}
    assert not (pieces / "model.safetensors").exists()
    # Killed and resumed, with as many: the same rows, and the same bytes of the weights.
    assert rows(tmp_path / "killed") == rows(tmp_path / "pieces2")
    again, before = weights(tmp_path / "killed"), weights(tmp_path / "pieces2")
    assert all(torch.equal(again[name], before[name]) for name in before)
    assert re.search("another process of this run ended", said(tmp_path / "killed", 0))
    check_adapters(tmp_path)


def check_adapters(out: Path) -> None:
    """Adapters in pieces are those of one process: weights that are frozen in bfloat16 round the joined gradient a little, and
    updates are 1e-3. AdamW divides by the size of the gradient: where that is hardly more than its rounding, a step may be
    another, but no two steps lie further apart than the two of both runs are long. Killed and resumed, they have the same
    bytes."""
    one, pieces, killed = (weights(out / name) for name in ("adapters1", "adapters2", "adapters_killed"))
    assert one.keys() == pieces.keys() and all(".lora_" in name for name in one)
    apart = torch.cat([(pieces[name] - tensor).abs().flatten() for name, tensor in one.items()])
    assert (apart > 5e-6).float().mean() < 0.01 and apart.max() < 4 * 1e-3
    assert max(tensor.abs().max() for name, tensor in one.items() if "lora_B" in name) > 1e-3
    assert rows(out / "adapters_killed") == rows(out / "adapters2")
    assert all(torch.equal(killed[name], pieces[name]) for name in pieces)


def test_the_shipped_configuration_sets_the_variables_that_the_processes_are_tested_with() -> None:
    arguments = launch_command_parser().parse_args(["--config_file", "examples/fsdp2.yaml", "script.py"])
    arguments, _, _ = _validate_launch_command(arguments)
    environment = prepare_multi_gpu_env(arguments)
    assert {name: environment[name] for name in VARIABLES} == VARIABLES


@pytest.mark.parametrize(
    ("variables", "changes", "message"),
    [
        ({"FSDP_VERSION": "1"}, {}, "write fsdp_version: 2"),
        ({"FSDP_STATE_DICT_TYPE": "FULL_STATE_DICT"}, {}, "write SHARDED_STATE_DICT"),
        ({"FSDP_CPU_RAM_EFFICIENT_LOADING": "true"}, {}, "write false"),
        ({}, {"weights": "bfloat16"}, "leave it at 'float32'"),
        ({}, {"engine": "a.module:Class"}, "leave it at 'auto'"),
    ],
)
def test_what_cannot_be_in_pieces_is_refused(
    variables: dict[str, str], changes: dict[str, Any], message: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    sharding.check(replace(run, **changes))
    for name, value in {"WORLD_SIZE": "2", "ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": "2", **variables}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=message):
        sharding.check(replace(run, **changes))
