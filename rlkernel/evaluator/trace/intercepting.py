"""Puts a recorder in the place of Triton's launches and of its driver, while a candidate is traced."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
import triton
from torch._library.triton import set_wrap_triton_enabled
from triton._utils import validate_block_shape
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction
from triton.tools.tensor_descriptor import TensorDescriptor

from rlkernel.evaluator.program.compiled_ahead import KernelFacts
from rlkernel.evaluator.trace.inductor import compiled_style
from rlkernel.evaluator.trace.kernels import KernelTable
from rlkernel.evaluator.trace.launches import LaunchRecorder
from rlkernel.evaluator.trace.recorder import Recorder, Untraceable
from rlkernel.evaluator.trace.warmup import Handle
from rlkernel.patched import patched


def _check_descriptor(self: Any) -> None:
    """`TensorDescriptor.__post_init__` without reading an address: the same rules, on the offset in the storage."""
    rank, size = len(self.shape), self.base.element_size()
    if not 1 <= rank <= 5 or len(self.strides) != rank or len(self.block_shape) != rank:
        raise AssertionError(f"tensor descriptor of rank {rank}: shape, strides and block_shape need the same 1 to 5 dimensions")
    if self.base.storage_offset() * size % 16:
        raise AssertionError("base must be 16-byte aligned")
    validate_block_shape(self.block_shape)
    if any(stride * size % 16 for stride in self.strides[:-1]):
        raise AssertionError("strides must be 16-byte aligned")
    if any(dim <= 0 for dim in self.shape):
        raise AssertionError("shape must be positive")
    if self.strides[-1] != 1:
        raise AssertionError("Last dimension must be contiguous")
    if self.padding not in ("zero", "nan") or (self.padding == "nan" and not self.base.dtype.is_floating_point):
        raise AssertionError("Illegal value for padding")


class _Launched:
    """What a launch returns: natively the compiled kernel, which a trace has not."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise Untraceable(f"the host asks what was compiled (.{name}), which is not known while it is traced")


class _Driver:
    """What host code may ask Triton's driver about: answers for the target, offers nothing else."""

    def __init__(self, target: Any, properties: dict[str, int]) -> None:
        self._target = target
        self.utils = types.SimpleNamespace(get_device_properties=lambda device: dict(properties))

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int = 0) -> int:
        return 0

    def get_current_target(self) -> Any:
        return self._target

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cuda", 0)

    def get_device_interface(self) -> Any:
        return torch.cuda


@contextmanager
def intercepting(
    recorder: Recorder, table: KernelTable, filename: str, target: Any, properties: dict[str, int],
    known: Mapping[str, KernelFacts] | None = None,
) -> Iterator[LaunchRecorder]:  # fmt: skip
    """Launches inside are recorded; Triton believes that `target` is present. Gives what records them."""
    launches = LaunchRecorder(recorder, table, filename, known)

    def method(original: Callable[..., Any], call: Callable[..., Handle | None]) -> Callable[..., Any]:
        @functools.wraps(original)  # Python's own messages name it
        def run(self: Any, *args: Any, **kwargs: Any) -> Any:
            return call(self, *args, **kwargs) or _Launched()

        return run

    triton.runtime.driver.set_active(_Driver(target, properties))
    with (
        patched(JITFunction, run=method(JITFunction.run, launches.jit_run)),
        patched(Autotuner, run=method(Autotuner.run, launches.autotune_run)),
        patched(TensorDescriptor, __post_init__=_check_descriptor),
        compiled_style(launches.autotune_run),
        set_wrap_triton_enabled(False),  # torch.library.wrap_triton gives the kernel itself
    ):
        yield launches
