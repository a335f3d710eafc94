"""What text in the style of torch.compile's output asks of torch: helpers for kernels, checks, memory and decorated kernels.

Models that were trained on such text write `empty_strided_cuda`, `assert_size_stride`, `get_raw_stream`, `reinterpret_tensor`,
`extern_kernels.mm`, `triton_helpers.maximum` and `@triton_heuristics.pointwise`. All of it is recorded as what it does.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
from torch._inductor.runtime import triton_helpers, triton_heuristics

from rlkernel.evaluator.trace.devices import CUDA

HELPERS = triton_helpers.__name__


def _empty_strided(size: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    return torch.empty_strided(size, stride, dtype=dtype, device=CUDA)


def _empty_strided_cpu(size: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    return torch.empty_strided(size, stride, dtype=dtype, device="cpu")


def _reinterpreted(tensor: torch.Tensor, size: Sequence[int], stride: Sequence[int], offset: int = 0) -> torch.Tensor:
    return torch.as_strided(tensor, size, stride, tensor.storage_offset() + offset)


def _assert_size_stride(tensor: torch.Tensor, size: Sequence[int], stride: Sequence[int], name: str | None = None) -> None:
    """Raises AssertionError where a dimension of more than one element has another stride, as torch's own check does."""
    if tensor.dim() != len(size):
        raise AssertionError(f"wrong number of dimensions{'' if name is None else f' for op: {name}'}")
    for place, (found, wanted) in enumerate(zip(tensor.size(), size, strict=True)):
        if found != wanted or (found > 1 and tensor.stride(place) != stride[place]):
            raise AssertionError(
                f"expected size {found}=={wanted}, stride {tensor.stride(place)}=={stride[place]} at dim={place}"
            )


def _assert_alignment(tensor: torch.Tensor, alignment: int, name: str | None = None) -> None:
    if tensor.storage_offset() * tensor.element_size() % alignment:
        raise AssertionError(f"expect the tensor to be {alignment} bytes aligned")


_GUARDS: dict[str, Callable[..., Any]] = {
    "_empty_strided_cuda": _empty_strided,
    "_empty_strided_cpu": _empty_strided_cpu,
    "_reinterpret_tensor": _reinterpreted,
    "assert_size_stride": _assert_size_stride,
    "assert_alignment": _assert_alignment,
}


class _DeviceGuard:
    """`torch.cuda._DeviceGuard` with one GPU."""

    def __init__(self, index: int) -> None:
        del index

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        return None


def _run(record: Callable[..., None]) -> Callable[..., None]:
    """`CachingAutotuner.run` in place: the launch of an autotuned kernel, whose grid is told by what the decorator was given."""

    def run(self: Any, *args: Any, stream: Any = None, **kwargs: Any) -> None:
        del stream

        def grid(meta: dict[str, Any]) -> tuple[int, ...]:
            expression = triton_heuristics.GridExpr.from_meta(self.inductor_meta, dict(meta))
            return tuple(expression.eval_slow(dict(meta)))

        configs = list(self.configs)
        names = list(self.fn.arg_names)
        tuner = types.SimpleNamespace(
            configs=configs, fn=self.fn, arg_names=names, nargs=None, prune_configs=lambda given: configs
        )  # fmt: skip
        record(tuner, *args, **{"grid": grid, **kwargs})

    return run


@contextmanager
def compiled_style(record: Callable[..., None]) -> Iterator[None]:
    """Inside, text in the style of torch.compile's output can be traced. `record`: what records an autotuned launch."""
    guards = torch._C._dynamo.guards
    with ExitStack() as stack:
        for name, call in _GUARDS.items():
            if hasattr(guards, name):
                stack.enter_context(mock.patch.object(guards, name, call))
        stack.enter_context(mock.patch.object(torch._C, "_cuda_getCurrentRawStream", lambda index: 0, create=True))
        stack.enter_context(mock.patch.object(torch.cuda, "_DeviceGuard", _DeviceGuard))
        stack.enter_context(mock.patch.object(triton_helpers, "set_driver_to_gpu", lambda: None))
        stack.enter_context(mock.patch.object(triton_heuristics.CachingAutotuner, "run", _run(record)))
        yield
