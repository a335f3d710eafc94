"""`torch.cuda` as the candidate's host code sees it while it is traced: the target GPU, with nothing behind it."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
import triton.testing

from rlkernel.cuda_objects import ELAPSED_MS, Generator, Stream, answers, properties
from rlkernel.evaluator.devices import DeviceProfile
from rlkernel.evaluator.program.without_data import truncated_normal
from rlkernel.evaluator.trace.recorder import Untraceable
from rlkernel.patched import patched


def _benchmarked(fn: Any, *args: Any, quantiles: Any = None, return_mode: str = "mean", **kwargs: Any) -> Any:
    """In place of Triton's benchmarks. Nothing is launched, and all take equally long, as between two events."""
    del fn, args, kwargs
    if quantiles is None:
        return [ELAPSED_MS] if return_mode == "all" else ELAPSED_MS
    return [ELAPSED_MS] * len(quantiles) if len(quantiles) > 1 else ELAPSED_MS


class _Extensions(types.ModuleType):
    """`torch.utils.cpp_extension`: it can be imported, and builds nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _refuse(f"a C++ or CUDA extension ({name})")


def _refuse(what: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise Untraceable(f"{what} cannot be traced")

    return refuse


def _compile(model: Any = None, **settings: Any) -> Any:
    """`torch.compile`: a function may be handed over and left alone; what comes back is refused once it is called."""
    if model is None:
        return functools.partial(_compile, **settings)
    refused = _refuse("torch.compile")
    if not isinstance(model, types.FunctionType):
        return refused()
    return functools.wraps(model)(lambda *args, **kwargs: refused())


_NVTX: dict[str, Any] = {
    "range_push": lambda msg: 0,
    "range_pop": lambda: 0,
    "range_start": lambda msg: 0,
    "range_end": lambda range_id: None,
    "mark": lambda msg: None,
    "range": lambda msg, *args, **kwargs: nullcontext(),
}


def _accelerator(stream: Stream) -> dict[str, Any]:
    """`torch.accelerator` with one GPU."""
    found: dict[str, Any] = {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_accelerator": lambda check_available=False: torch.device("cuda"),
        "current_device_index": lambda: 0,
        "current_device_idx": lambda: 0,
        "set_device_index": lambda device: None,
        "set_device_idx": lambda device: None,
        "current_stream": lambda device=None: stream,
        "set_stream": lambda stream: None,
        "synchronize": lambda device=None: None,
        "device_index": lambda device: nullcontext(),
        "empty_cache": lambda: None,
        "memory_allocated": lambda device=None: 0,
        "max_memory_allocated": lambda device=None: 0,
    }
    return {name: answer for name, answer in found.items() if hasattr(torch.accelerator, name)}


def properties_of(profile: DeviceProfile) -> types.SimpleNamespace:
    """What `torch.cuda.get_device_properties` tells of a card of this profile."""
    return properties(
        name=f"NVIDIA {profile.name.upper()}", arch=profile.arch, memory=profile.memory_bytes,
        processors=profile.processors, l2=profile.l2_bytes, shared=profile.shared_bytes,
    )  # fmt: skip


@contextmanager
def _without_extensions() -> Iterator[None]:
    """Inside, `torch.utils.cpp_extension` builds nothing, and is not loaded. What else is imported inside stays."""
    name = "torch.utils.cpp_extension"
    before = sys.modules.get(name)
    extensions = sys.modules[name] = _Extensions(name)
    try:
        with patched(torch.utils, create=True, cpp_extension=extensions):
            yield
    finally:
        del sys.modules[name]
        if before is not None:
            sys.modules[name] = before


@contextmanager
def answering_as(profile: DeviceProfile) -> Iterator[None]:
    """Inside, `torch.cuda` answers as `profile` would."""
    graphs = {name: _refuse("a CUDA graph") for name in ("CUDAGraph", "graph")}
    with (
        patched(torch.cuda, **answers(properties_of(profile)), **graphs),
        patched(torch.cuda.nvtx, **_NVTX),
        patched(torch.accelerator, **_accelerator(Stream())),
        patched(torch.version, cuda="12.8"),
        patched(torch, Generator=Generator),
        patched(torch, seed=_refuse("torch.seed(), a random number on the host,")),
        patched(torch, compile=_compile),
        patched(triton.testing, do_bench=_benchmarked, do_bench_cudagraph=_benchmarked),
        # Recurrent layers on a GPU lay their weights out as one block; `program.recurrent` does it where a Program runs.
        patched(torch, _use_cudnn_rnn_flatten_weight=lambda: False),
        patched(torch.nn.init, _no_grad_trunc_normal_=truncated_normal),
        patched(torch.distributions.Distribution, _validate_args=False),  # it would look at values
        _without_extensions(),
    ):
        yield
