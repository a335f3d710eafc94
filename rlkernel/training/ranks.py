"""Several processes that train one run, as `accelerate launch` or `torchrun` start them.

Rank 0 is the run: it samples, evaluates, measures, writes, and sends every batch to the others, which only train
(`rlkernel.training.follower`). Messages have a process group of their own (gloo, through memory of the CPU), in which a process
may wait for as long as a batch takes to be sampled; gradients have the default group (NCCL between GPUs). All join at the first
use.

With one process, nothing is sent and a total is what it was.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from rlkernel.errors import UsageError, one_line

if TYPE_CHECKING:
    import torch
    from torch.distributed import ProcessGroup

PATIENCE = timedelta(days=30)
"""How long a process waits for a message. Who waits for a process that has died is told by its closed connection."""


class Lost(UsageError):
    """Another process of the run is gone."""


def size() -> int:
    """How many processes train this run."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def rank() -> int:
    """The number of this process: 0 for the one that owns the run."""
    return int(os.environ.get("RANK", "0")) if size() > 1 else 0


def local_size() -> int:
    """How many processes train this run on this machine: process i of them trains on its card i."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", "1")) if size() > 1 else 1


def local_rank() -> int:
    """The number of this process among those on this machine."""
    return int(os.environ.get("LOCAL_RANK", "0")) if size() > 1 else 0


def check() -> None:
    """Raise UsageError for what accelerate offers and these processes cannot do."""
    for name in ("DEEPSPEED", "MEGATRON_LM"):
        if os.environ.get(f"ACCELERATE_USE_{name}", "false").lower() == "true":
            raise UsageError(f"accelerate is configured for {name}: use --multi_gpu alone, or FSDP2 for weights in pieces")


def send(message: Any) -> None:
    """Send anything that can be pickled from rank 0 to all others, which `receive` it. Raises Lost."""
    if size() > 1:
        import torch.distributed as dist

        with noticed():
            dist.broadcast_object_list([message], src=0, group=_messages())


def receive() -> Any:
    """Wait for what rank 0 sends next. Raises Lost."""
    import torch.distributed as dist

    found: list[Any] = [None]
    with noticed():
        dist.broadcast_object_list(found, src=0, group=_messages())
    return found[0]


def shared(message: Any) -> Any:
    """What rank 0 gives, in every process; what the others give is nothing. Raises Lost."""
    if rank():
        return receive()
    send(message)
    return message


def gather(value: Any) -> list[Any]:
    """What every process gives, in their order; an empty list for all but rank 0. Raises Lost."""
    if size() == 1:
        return [value]
    import torch.distributed as dist

    found: list[Any] | None = [None] * size() if rank() == 0 else None
    with noticed():
        dist.gather_object(value, found, dst=0, group=_messages())
    return found or []


def meet() -> None:
    """Go on when all processes have come here. Raises Lost."""
    if size() > 1:
        import torch.distributed as dist

        with noticed():
            dist.barrier(group=_messages())


def total(tensor: torch.Tensor) -> torch.Tensor:
    """The sum over all processes of tensors of one shape on the CPU. Raises Lost."""
    if size() > 1:
        import torch.distributed as dist

        with noticed():
            dist.all_reduce(tensor, group=_messages())
    return tensor


def leave() -> None:
    """End the group, in every process: rank 0 has sent None, the others have received it."""
    if size() > 1:
        import torch.distributed as dist

        meet()
        dist.destroy_process_group()
        _messages.cache_clear()


def part() -> None:
    """End the group for good: the first process goes on as one that was started alone, and the others are to end."""
    if size() > 1:
        first = rank() == 0
        leave()
        if first:
            for name in ("WORLD_SIZE", "RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE"):
                os.environ.pop(name, None)


@contextmanager
def noticed() -> Iterator[None]:
    """Raise Lost for what torch raises when another process is gone."""
    try:
        yield
    except RuntimeError as error:
        import torch.distributed as dist

        # gloo has no exception of its own, but its source file in the message.
        if not isinstance(error, dist.DistError) and "gloo" not in str(error):
            raise
        ended = "another process of this run ended, see above: the same command goes on from the last checkpoint"
        raise Lost(f"{ended} ({one_line(error)})") from error


@functools.cache
def _messages() -> ProcessGroup:
    import torch
    import torch.distributed as dist

    if not dist.is_initialized():
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    group: ProcessGroup = dist.new_group(backend="gloo", timeout=PATIENCE)
    return group
