"""Weights, gradients and moments in pieces, one per process: FSDP2, as `accelerate launch --config_file` configures it.

A process gathers the weights of one block when it computes with it, and gives them back afterwards. All processes must compute
with the same block at the same time, so all of them have the same number of passes: one without rows left computes a row whose
tokens do not train. Gradients are joined in every pass, because whole ones would take the memory that was saved. Checkpoints
are those of torch.distributed.checkpoint, in pieces that any number of processes can read.

accelerate offers FSDP to GPUs alone: of processes on the CPU it ignores the configuration. Its own code runs there, too, so
`prepare` puts the state in place that it has on GPUs.
"""

from __future__ import annotations

import os
from typing import Any

from rlkernel.config import Run
from rlkernel.errors import UsageError
from rlkernel.training import ranks


def active() -> bool:
    """Whether the processes of this run hold pieces of the weights."""
    return ranks.size() > 1 and _set("ACCELERATE_USE_FSDP")


def pieces() -> int:
    """In how many pieces the weights are: one per process, or 1."""
    return ranks.size() if active() else 1


def check(run: Run) -> None:
    """Raise UsageError for what several processes cannot do, cannot be sharded, or is configured in another way."""
    ranks.check()
    if not active():
        return
    if os.environ.get("FSDP_VERSION") != "2":
        raise UsageError("accelerate is configured for FSDP1: write fsdp_version: 2 into its configuration")
    if "FULL" in os.environ.get("FSDP_STATE_DICT_TYPE", ""):
        raise UsageError("fsdp_state_dict_type is FULL_STATE_DICT: write SHARDED_STATE_DICT, for any number of processes")
    if _set("FSDP_CPU_RAM_EFFICIENT_LOADING"):
        raise UsageError("fsdp_cpu_ram_efficient_loading is true: write false, every process loads the weights by itself")
    check_weights(run.weights, "Run.weights")
    if ":" in run.engine:
        raise UsageError(f"Run.engine is {run.engine!r}, which would read weights in pieces: leave it at 'auto'")


def check_weights(weights: str, said: str) -> None:
    """Raise UsageError for a format of the weights that cannot be in pieces. said: `Run.weights`, or a flag."""
    if weights != "float32":
        raise UsageError(f"{said} is {weights!r}: its moments of eight bits are not sharded, so leave it at 'float32'")


def prepare(trainer: Any) -> None:
    """Set how the trainer's model will be sharded. Pieces travel in float32, and autocast makes matrices short where they are
    used: numbers are those of one process, and what lies between the blocks stays in float32."""
    from accelerate import PartialState
    from accelerate.utils import DistributedType, FullyShardedDataParallelPlugin
    from torch.distributed.fsdp import MixedPrecisionPolicy

    state = trainer.accelerator.state
    if state.distributed_type == DistributedType.MULTI_CPU:
        state.distributed_type = PartialState._shared_state["distributed_type"] = DistributedType.FSDP
        state.fsdp_plugin = FullyShardedDataParallelPlugin()
    state.fsdp_plugin.mixed_precision_policy = MixedPrecisionPolicy()
    trainer.is_fsdp_enabled = True


def _set(name: str) -> bool:
    return os.environ.get(name, "false").lower() == "true"
