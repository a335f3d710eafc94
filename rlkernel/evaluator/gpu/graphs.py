"""Long forwards as CUDA graphs: one launch per timed call, so that the host's pace leaves no gaps between hundreds of kernels.

A graph is recorded anew for every timed call, from that call's own inputs and weights. It is dropped after the call was checked,
so nothing in it can be stale.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from rlkernel.evaluator.gpu import driver
from rlkernel.evaluator.gpu.stopwatch import on_stream, stream
from rlkernel.seeds import seed_generators

LONG_STEPS = 100
"""The number of operators and launches of one forward above which both sides are timed as graphs."""


@functools.cache
def _side() -> torch.cuda.Stream:
    """The stream on which graphs are recorded; the default stream cannot record."""
    return torch.cuda.Stream()


def record(call: Callable[[], Any], seed: int) -> tuple[Any, torch.cuda.CUDAGraph] | None:
    """Record one call, and return its result to be and its graph; None for a call that waits for the GPU, or allocates otherwise.

    Nothing runs until `replay`. Random operators draw from `seed`.
    """
    seed_generators(seed)
    graph, side = torch.cuda.CUDAGraph(), _side()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side), on_stream(side):
        graph.capture_begin(capture_error_mode="thread_local")
        try:
            result = call()
        except Exception:  # what cannot be recorded raises in many ways; the eager call will tell if it is the call's own fault
            try:
                graph.capture_end()
            except RuntimeError:  # it says that the recording was given up, which is known
                _leave_recording()
            return None
        graph.capture_end()
    torch.cuda.current_stream().wait_stream(side)
    if hasattr(graph, "raw_cuda_graph_exec"):  # since torch 2.9
        driver.upload_graph(graph.raw_cuda_graph_exec(), stream().cuda_stream)
    return result, graph


def _leave_recording() -> None:
    """Give the default generator another state: a recording that was given up leaves its own waiting for the end,
    so that every later draw would raise."""
    device = torch.cuda.current_device()
    torch.cuda.default_generators[device].graphsafe_set_state(torch.Generator(f"cuda:{device}").graphsafe_get_state())


def replay(graph: torch.cuda.CUDAGraph, seed: int) -> Callable[[], None]:
    """A function that runs the recorded call with one launch."""
    seed_generators(seed)
    return graph.replay
