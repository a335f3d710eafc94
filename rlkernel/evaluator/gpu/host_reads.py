"""What a reference's host reads of the GPU, noted in one call and given in another one on the same inputs.

A host that waits for a number leaves the GPU idle meanwhile, for a time that says nothing of the kernels. A candidate's Program
has no host, so its time has no such gaps. To compare like with like, a reference that reads is called twice on the same inputs:
once to note what it reads, and then timed, with the same numbers at once and without waiting. Source: ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from rlkernel.evaluator.judging.references.reference_calls import call
from rlkernel.evaluator.program.value_lengths import BY_VALUES

_aten = torch.ops.aten
_CHECKS = (_aten._linalg_check_errors.default,)
"""Operators that read values of the GPU only to raise where these are wrong."""


class HostReads(TorchDispatchMode):
    """Inside, what the host reads of the GPU is noted in `noted`; or is what was `known` before, and nobody waits."""

    def __init__(self, known: Sequence[Any] | None = None) -> None:
        super().__init__()
        self.noted: list[Any] = []
        self._known = None if known is None else iter(known)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        if str(func) in BY_VALUES and is_of_gpu(args[0]):
            found = BY_VALUES[str(func)](self._number_of, *args, **kwargs)
            return func(*args, **kwargs) if found is None else found
        return self._read(lambda: func(*args, **kwargs)) if _reads(func, args, kwargs) else func(*args, **kwargs)

    def _number_of(self, tensor: torch.Tensor, question: Callable[[torch.Tensor], torch.Tensor]) -> int:
        """How long a result is, for which the host would wait."""
        return int(self._read(lambda: int(question(tensor))))

    def _read(self, ask: Callable[[], Any]) -> Any:
        if self._known is not None:
            for value in self._known:  # the next one; a host that reads more than it has read before waits
                return value.clone() if isinstance(value, torch.Tensor) else value
        value = ask()
        self.noted.append(value.clone() if isinstance(value, torch.Tensor) else value)
        return value


def _reads(func: Any, args: Any, kwargs: dict[str, Any]) -> bool:
    """Whether a call makes the host wait for values: one number, a copy in the host's memory, or a check."""
    if func in _CHECKS:
        return True
    if func is not _aten._local_scalar_dense.default and func is not _aten._to_copy.default:
        return False
    if not is_of_gpu(args[0]):
        return False
    device = kwargs.get("device")
    return func is _aten._local_scalar_dense.default or (device is not None and torch.device(device).type == "cpu")


def is_of_gpu(tensor: torch.Tensor) -> bool:
    """Whether the host has to wait for a tensor's values."""
    return tensor.is_cuda


def noted(model: nn.Module, inputs: list[Any], seed: int) -> list[Any]:
    """What the host reads in one call. The model and the inputs are the call's own: it may change them."""
    mode = HostReads()
    with mode:
        call(model, inputs, seed)
    return mode.noted


def answered(model: nn.Module, inputs: list[Any], seed: int, known: Sequence[Any]) -> Any:
    """The same call, which does not wait for what is known."""
    with HostReads(known):
        return call(model, inputs, seed)
