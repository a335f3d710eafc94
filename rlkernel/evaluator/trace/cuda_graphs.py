"""CUDA graphs that host code captures: a replay is recorded as the steps that were captured, on the tensors that are there then.

A capture executes nothing, as on a GPU. Tensors that it makes have no values before the first replay, and new ones after each.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from rlkernel.evaluator.program.references import Reference, changed
from rlkernel.evaluator.program.schema import Launch, Step
from rlkernel.evaluator.program.values import ScalarRef, TensorRef
from rlkernel.evaluator.trace.recorder import Recorder
from rlkernel.patched import patched


class _Captures:
    """The captures of one trace."""

    def __init__(self, recorder: Recorder, kept: dict[int, tuple[int, ...]]) -> None:
        self.recorder = recorder
        self.kept = kept
        """Launch, by its identity -> the configurations that its tuner keeps."""
        self.current: _Graph | None = None
        self.steps: list[Step] = []
        """All that was captured, also by graphs that are gone, so that no launch takes over another one's identity."""


class _Graph:
    """`torch.cuda.CUDAGraph`."""

    captures: _Captures

    def __init__(self, keep_graph: bool = False) -> None:
        del keep_graph
        self._steps: list[Step] | None = None
        self._began = (0, 0)
        """How many steps and tensors there were before the capture."""
        self._memory: set[int] = set()
        """The memory that the capture has made."""

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
        del pool, capture_error_mode
        if self.captures.current is not None:
            raise RuntimeError("a CUDA graph is captured already")
        recorder = self.captures.recorder
        self.captures.current, self._steps = self, None
        self._began = len(recorder.steps), len(recorder.ids)

    def capture_end(self) -> None:
        if self.captures.current is not self:
            raise RuntimeError("capture_end() called without capture_begin()")
        self.captures.current = None
        recorder = self.captures.recorder
        self._steps = recorder.taken_back(self._began[0])
        self.captures.steps += self._steps
        recorder.captured = True
        self._memory = recorder.ids.forget(self._began[1])

    def replay(self) -> None:
        if self._steps is None:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        recorder, new = self.captures.recorder, dict[int, int]()
        recorder.ids.renew(self._memory)

        def change(ref: Reference) -> Reference:
            if isinstance(ref, ScalarRef):
                return ref
            if ref.number < self._began[1]:
                return TensorRef(recorder.ids.now(ref.number))
            if ref.number not in new:
                new[ref.number] = recorder.ids.bind(recorder.ids.tensor(ref.number))
            return TensorRef(new[ref.number])

        for step in self._steps:
            again = changed(step, change)
            if isinstance(step, Launch) and id(step) in self.captures.kept:
                self.captures.kept[id(again)] = self.captures.kept[id(step)]
            recorder.launch(again)

    def reset(self) -> None:
        self._steps = None

    def instantiate(self) -> None:
        return None

    def pool(self) -> tuple[int, int]:
        return 0, 1


class _Capture:
    """`torch.cuda.graph`: what is called inside is captured."""

    def __init__(self, cuda_graph: _Graph, pool: Any = None, stream: Any = None, **options: Any) -> None:
        del pool, stream, options
        self._graph = cuda_graph

    def __enter__(self) -> None:
        self._graph.capture_begin()

    def __exit__(self, *error: object) -> None:
        self._graph.capture_end()


def _as_they_are(callables: Any, *args: Any, **kwargs: Any) -> Any:
    """`torch.cuda.make_graphed_callables`: a graph of a function gives what the function gives."""
    del args, kwargs
    return callables


@contextmanager
def graphs(recorder: Recorder, kept: dict[int, tuple[int, ...]]) -> Iterator[None]:
    """Inside, `torch.cuda` captures and replays what `recorder` records. kept: of the launches so far, see `LaunchRecorder`."""
    captures = _Captures(recorder, kept)
    answers: dict[str, Any] = {
        "CUDAGraph": type("CUDAGraph", (_Graph,), {"captures": captures}),
        "graph": _Capture,
        "graph_pool_handle": lambda: (0, 1),
        "make_graphed_callables": _as_they_are,
        "is_current_stream_capturing": lambda: captures.current is not None,
    }
    with patched(torch.cuda, **answers), patched(torch.cuda.graphs, CUDAGraph=answers["CUDAGraph"], graph=answers["graph"]):
        yield
