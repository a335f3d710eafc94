"""What computes an operator on each device, where that is not the operator itself.

For some operators torch chooses cuDNN on a GPU before it dispatches; a trace, on tensors without data, sees another choice. A
module that normalises a batch by cuDNN would be replayed by a kernel of another speed and with other roundings. So on a GPU a
step of these makes the call that chooses, as the reference's own module does there. Operators that a GPU alone has are computed
by others on a CPU, and without data only the shapes of results count.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from rlkernel.evaluator.program.operators import operator
from rlkernel.evaluator.program.without_data import CALLS, ON_CPU


def _batch_norm(*args: Any, **kwargs: Any) -> tuple[torch.Tensor, ...]:
    """The three results of `native_batch_norm` by whatever `torch.batch_norm` takes."""
    enabled = torch.backends.cudnn.enabled
    result: tuple[Any, ...] = torch.ops.aten._batch_norm_impl_index(*args, **kwargs, cudnn_enabled=enabled)
    return result[:3]


ON_CUDA: dict[str, Callable[..., Any]] = {
    "aten.native_batch_norm.default": _batch_norm,
    "aten.grid_sampler_2d.default": torch.ops.aten.grid_sampler.default,
}
"""Operator -> what chooses how a GPU computes it, with the same arguments and results."""
_BY_DEVICE = {"meta": CALLS, "cuda": ON_CUDA, "cpu": ON_CPU}


def function_of(op: str, device: torch.device) -> Callable[..., Any]:
    """What to call for an operator on a device. Raises MalformedProgram for one that a Program may not name."""
    return _BY_DEVICE.get(device.type, {}).get(op) or operator(op)
