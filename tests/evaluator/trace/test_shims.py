"""`torch.cuda` as host code sees it while it is traced: the profile's answers, and no way to a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from rlkernel.evaluator.devices import A100, H200
from rlkernel.evaluator.trace.recorder import Untraceable
from rlkernel.evaluator.trace.shims import answering_as


def test_the_profile_answers() -> None:
    with answering_as(A100):
        properties: Any = torch.cuda.get_device_properties(0)
        assert torch.cuda.is_available()
        assert torch.cuda.device_count() == 1
        assert torch.cuda.get_device_name() == "NVIDIA A100"
        assert torch.cuda.get_device_capability() == (8, 0)
        assert (properties.multi_processor_count, properties.total_memory) == (108, 80 * 10**9)
        assert properties.shared_memory_per_block_optin == 166_912
    with answering_as(H200):
        assert torch.cuda.get_device_capability() == (9, 0)


def test_afterwards_torch_is_as_before() -> None:
    names = ("is_available", "get_device_name", "Stream", "Event", "CUDAGraph", "stream", "synchronize")
    before = [getattr(torch.cuda, name) for name in names]
    compile_before = torch.compile
    with pytest.raises(RuntimeError, match="inside"), answering_as(H200):
        assert all(getattr(torch.cuda, name) is not one for name, one in zip(names, before, strict=True))
        raise RuntimeError("inside")
    assert [getattr(torch.cuda, name) for name in names] == before
    assert torch.compile is compile_before


def _load_inline(**options: Any) -> Any:
    from torch.utils.cpp_extension import load_inline

    return load_inline(**options)


def _load_by_its_whole_name(**options: Any) -> Any:
    import torch.utils.cpp_extension

    return torch.utils.cpp_extension.load_inline(**options)


def test_streams_and_events_have_no_effect() -> None:
    with answering_as(H200):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side), side:
            event = side.record_event()
        assert (event.query(), side.query(), side.cuda_stream) == (True, True, 0)
        torch.cuda.current_stream().wait_event(event)
        torch.cuda.synchronize()


def test_a_device_takes_as_long_for_all() -> None:
    with answering_as(H200):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        end.record()
        assert start.elapsed_time(end) == 1.0


def _doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda: _load_inline(name="x", cuda_sources=""), "a C++ or CUDA extension (load_inline) cannot be traced"),
        (lambda: _load_by_its_whole_name(name="x"), "a C++ or CUDA extension (load_inline) cannot be traced"),
        (lambda: torch.cuda.CUDAGraph(), "a CUDA graph cannot be traced"),
        (lambda: torch.compile(torch.relu), "torch.compile cannot be traced"),
        (lambda: torch.compile(torch.nn.ReLU()), "torch.compile cannot be traced"),
        (lambda: torch.compile(_doubled)(torch.ones(2)), "torch.compile cannot be traced"),
        (lambda: torch.compile(dynamic=True)(_doubled)(torch.ones(2)), "torch.compile cannot be traced"),
    ],
)
def test_what_a_program_cannot_hold_is_refused(call: Callable[[], Any], line: str) -> None:
    with answering_as(H200), pytest.raises(Untraceable) as refused:
        call()
    assert str(refused.value) == line


def test_a_function_may_be_handed_to_torch_compile_and_left_alone() -> None:
    with answering_as(H200):
        handed, decorated = torch.compile(_doubled), torch.compile(mode="max-autotune")(_doubled)
    assert (handed.__name__, decorated.__name__) == ("_doubled", "_doubled")
