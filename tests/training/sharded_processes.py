"""Train a tiny model in one process, and in several that hold pieces of its weights; kill one, resume, with other numbers too.

    python tests/training/sharded_processes.py MODEL OUT      prints one JSON line per attempt

What `accelerate launch --config_file` does is to set the variables below.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from dataclasses import replace
from pathlib import Path

from algorithms.void_turns import VoidTurns
from rlkernel.settings import Loss
from rlkernel.training.trainer import KernelGRPOTrainer
from tests.training.several_processes import attempt, make_run

VARIABLES = {
    "ACCELERATE_USE_FSDP": "true",
    "FSDP_VERSION": "2",
    "FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP",
    "FSDP_STATE_DICT_TYPE": "SHARDED_STATE_DICT",
    "FSDP_CPU_RAM_EFFICIENT_LOADING": "false",
}


def main(model: str, out: Path) -> None:
    together = replace(make_run(model), staleness=0)
    ahead = make_run(model)
    attempt("one", 1, together, out / "one")
    attempt("one, ahead", 1, ahead, out / "ahead1")
    # The loss's own pass tells the mismatch: no other has log-probabilities, and rows without a trained token are in none.
    told = replace(together, corrections=(VoidTurns(),), rollout_dtype="float8", loss=Loss(beta=0.1))
    attempt("one, told by the loss", 1, told, out / "told1")
    attempt("two, told by the loss", 2, told, out / "told2")
    # Copies of the weights sample in all of them, so that adapters are merged and rounded alike.
    adapters = replace(together, lora_rank=4, rollout_dtype="bfloat16", learning_rate=1e-3)
    attempt("one, adapters", 1, adapters, out / "adapters1")
    os.environ.update(VARIABLES)
    attempt("in pieces, told by the loss", 4, told, out / "told4")
    for size in (2, 4):
        attempt("in pieces", size, together, out / f"pieces{size}")
    attempt("in pieces, ahead", 2, ahead, out / "ahead2")
    strikes = {1: (KernelGRPOTrainer, "_clip_grad_norm", 2, signal.SIGKILL)}
    attempt("another is killed", 2, together, out / "killed", strikes=strikes)
    attempt("in pieces, adapters", 2, adapters, out / "adapters2")
    attempt("another with adapters is killed", 2, adapters, out / "adapters_killed", strikes=strikes)
    attempt("adapters go on", 2, adapters, out / "adapters_killed")
    shutil.copytree(out / "killed", out / "grown")
    attempt("goes on", 2, together, out / "killed")
    attempt("goes on with more", 3, together, out / "grown")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
