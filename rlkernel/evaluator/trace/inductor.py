"""What text in the style of torch.compile's output asks of torch: helpers for kernels, checks, memory and decorated kernels.

Models that were trained on such text write `empty_strided_cuda`, `assert_size_stride`, `get_raw_stream`, `reinterpret_tensor`,
`extern_kernels.mm`, `triton_helpers.maximum` and `@triton_heuristics.pointwise`. All of it is recorded as what it does.

torch's compiler takes a second to import, and in some versions starts a thread, with which the zygote could not fork. So it is
imported in a child, where a candidate's text names it, and in the zygote once a second child asks for it and it starts none.
"""

from __future__ import annotations

import ast
import importlib
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any
from unittest import mock

import torch
from triton.runtime.autotuner import Autotuner

from rlkernel.evaluator.trace.devices import CUDA

PACKAGE = "torch._inductor"
HELPERS = f"{PACKAGE}.runtime.triton_helpers"
"""The module of the functions that torch.compile's kernels call."""
HEURISTICS = f"{PACKAGE}.runtime.triton_heuristics"
"""The module of its decorators."""


COMPILER = (HELPERS, HEURISTICS, f"{PACKAGE}.select_algorithm")
"""What such text imports, with all that this imports."""


def names_compiler(source: str) -> bool:
    """Whether a text names torch's compiler."""
    return PACKAGE.rpartition(".")[2] in source


def load(source: str) -> None:
    """Import what a candidate's text imports of torch's compiler, while torch is still as it is: a part that is first imported
    where operators are recorded would register none of its own. What cannot be imported fails in the candidate's own line."""
    if not names_compiler(source):
        return
    names = {HELPERS, HEURISTICS}
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return  # a verdict that others give
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    for name in sorted(names):
        if name == PACKAGE or name.startswith(f"{PACKAGE}."):
            with suppress(Exception):
                importlib.import_module(name)


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


def _run(record: Callable[..., None], grids: Any) -> Callable[..., None]:
    """`CachingAutotuner.run` in place: the launch of an autotuned kernel, whose grid is told by what the decorator was given.
    Its configurations are Triton's own, so it is recorded as an `Autotuner` of Triton with these."""

    tuners: weakref.WeakKeyDictionary[Any, Autotuner] = weakref.WeakKeyDictionary()

    def run(self: Any, *args: Any, stream: Any = None, **kwargs: Any) -> None:
        del stream

        def grid(meta: dict[str, Any]) -> tuple[int, ...]:
            expression = grids.from_meta(self.inductor_meta, dict(meta))
            return tuple(expression.eval_slow(dict(meta)))

        tuner = tuners.get(self)
        if tuner is None:
            names, configs = list(self.fn.arg_names), list(self.configs)
            reset, restored = (list(getattr(self, name, None) or ()) for name in ("reset_to_zero_arg_names", "mutated_arg_names"))
            tuners[self] = tuner = Autotuner(self.fn, names, configs, key=[], reset_to_zero=reset, restore_value=restored)
        record(tuner, *args, **{"grid": grid, "warmup": False, **kwargs})

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
        stack.enter_context(mock.patch.object(torch.ops.inductor, "_reinterpret_tensor", _reinterpreted))
        stack.enter_context(mock.patch.object(torch.cuda, "_DeviceGuard", _DeviceGuard))
        if HELPERS in sys.modules:
            stack.enter_context(mock.patch.object(sys.modules[HELPERS], "set_driver_to_gpu", lambda: None))
        if (heuristics := sys.modules.get(HEURISTICS)) is not None:
            stack.enter_context(mock.patch.object(heuristics.CachingAutotuner, "run", _run(record, heuristics.GridExpr)))
        yield
