"""The trusted side of a problem on the GPU: inputs and models from seeds, how exact an answer must be, where its time goes.

Nothing here is alive while a candidate's kernels run, unless it is compared with its seed afterwards.
"""

from __future__ import annotations

import copy
import secrets
import statistics
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from rlkernel.evaluator.judge import bound_of, norm_error
from rlkernel.evaluator.program import Launch, Program
from rlkernel.evaluator.replay import Replay
from rlkernel.evaluator.roofline import is_free
from rlkernel.evaluator.runner.cpu import flatten
from rlkernel.evaluator.runner.guards import CUDA
from rlkernel.evaluator.runner.stopwatch import Run, Stopwatch, mark
from rlkernel.reference import Reference, load_reference, seed_generators

STRESS = 8.0
"""Factor on floating-point inputs in the stressed round."""
ATTRIBUTION_RUNS = 3


def draw_seed() -> int:
    """From the operating system, after the candidate was traced."""
    return secrets.randbits(31)


def tensors_of(value: Any) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    flatten(value, found)
    return found


def on_gpu(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to(CUDA)
    return [on_gpu(item) for item in value] if isinstance(value, (list, tuple)) else value


def stressed(inputs: list[Any]) -> list[Any]:
    return [x * STRESS if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in inputs]


def _double(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.double() if value.is_floating_point() else value.clone()
    return [_double(item) for item in value] if isinstance(value, (list, tuple)) else value


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of round."""

    other: bool = False
    """In the other of train and eval mode."""
    stress: bool = False


@dataclass(frozen=True, slots=True)
class Known:
    """What is measured once for a problem; plain data, kept by the pool and given back to every runner."""

    allowed: dict[str, tuple[float, ...]]
    """Kind of round ("plain", "stress", "other") -> norm-relative error of each output. Without "stress" where that overflows."""
    changes_inputs: bool
    finite: bool
    """Whether the reference's outputs are finite, so that one pass over a timed output tells whether it matches."""
    rows: tuple[dict[str, Any], ...]
    """Device time of the reference's operators: {"op", "us"}."""
    eager_us: float

    @staticmethod
    def from_json(data: dict[str, Any]) -> Known:
        allowed = {kind: tuple(errors) for kind, errors in data["allowed"].items()}
        return Known(allowed, data["changes_inputs"], data["finite"], tuple(data["rows"]), data["eager_us"])


def name_of(kind: Kind) -> str:
    return "other" if kind.other else "stress" if kind.stress else "plain"


class GpuProblem:
    """A reference at full shape on this GPU."""

    def __init__(self, source: str, name: str) -> None:
        self.reference: Reference = load_reference(source, small=False, name=name)

    def inputs(self, seed: int, *, stress: bool = False) -> list[Any]:
        with CUDA:
            made = on_gpu(self.reference.inputs(seed))
        return stressed(made) if stress else list(made)

    def init_tensors(self) -> list[torch.Tensor]:
        with CUDA:
            args, kwargs = self.reference.init_inputs()
        return tensors_of(on_gpu([args, list(kwargs.values())]))

    def model(self, seed: int, *, other: bool = False) -> nn.Module:
        with CUDA:
            model = self.reference.model(seed).to(CUDA)
        return model.train(not model.training) if other else model

    @staticmethod
    def call(model: nn.Module, inputs: list[Any], seed: int) -> Any:
        seed_generators(seed)
        with torch.no_grad():
            return model(*inputs)

    def study(self, program: Program, stopwatch: Stopwatch, *, modal: bool, tf32: bool) -> Known:
        """Measure what `Known` holds. `program`: the reference's own trace. Raises what the reference raises."""
        allowed: dict[str, tuple[float, ...]] = {}
        changes = False
        for kind in (Kind(), Kind(stress=True), *([Kind(other=True)] if modal else [])):
            errors, moved = self._errors(kind, tf32=tf32)
            changes |= moved
            if errors is not None:
                allowed[name_of(kind)] = errors
        allowed.setdefault("other", allowed["plain"])
        model, inputs = self.model(draw_seed()), self.inputs(draw_seed())
        output = tensors_of(self.call(model, inputs, 0))
        finite = all(bool(torch.isfinite(t).all()) for t in output if t.is_floating_point())
        runs = [stopwatch.run(lambda: self.call(model, inputs, 0), 300.0)[1] for _ in range(ATTRIBUTION_RUNS)]
        runs[-1].end.synchronize()
        times = [run.us for run in runs]
        return Known(allowed, changes, finite, tuple(self._rows(program, stopwatch)), statistics.median(times))

    def _errors(self, kind: Kind, *, tf32: bool) -> tuple[tuple[float, ...] | None, bool]:
        """The error allowed for each output, None where a stressed reference is not finite; and whether inputs are changed."""
        seed, init_seed, forward_seed = draw_seed(), draw_seed(), draw_seed()
        model = self.model(init_seed, other=kind.other)
        exact_model = copy.deepcopy(model)
        inputs, pristine = self.inputs(seed, stress=kind.stress), self.inputs(seed, stress=kind.stress)
        found = tensors_of(self.call(model, inputs, forward_seed))
        changes = not all(torch.equal(a, b) for a, b in zip(tensors_of(inputs), tensors_of(pristine), strict=True))
        if kind.stress and not all(bool(torch.isfinite(t).all()) for t in found if t.is_floating_point()):
            return None, changes
        try:
            exact = tensors_of(self.call(exact_model.double(), _double(pristine), forward_seed))
        except (RuntimeError, ValueError, TypeError):
            exact = found  # the reference does not run in float64: it is its own measure
        errors = []
        for f, e in zip(found, exact, strict=True):
            own = norm_error(f, e) if e.shape == f.shape and f.is_floating_point() else 0.0
            own = own if own < 0.05 else 0.0  # a reference that jumps between values has no exact result
            # The candidate is compared with the reference, not with the exact result: both may err.
            errors.append(bound_of(f.dtype, own, tf32=tf32) + own)
        return tuple(errors), changes

    def _rows(self, program: Program, stopwatch: Stopwatch) -> list[dict[str, Any]]:
        replay = Replay(program, CUDA, lambda *call: None)
        replay.init(self.init_tensors(), 0)
        return step_times(replay, tensors_of(self.inputs(draw_seed())), stopwatch, {}, lambda: None)


def step_times(
    replay: Replay, inputs: list[torch.Tensor], stopwatch: Stopwatch, fresh: dict[int, torch.Tensor], before: Any
) -> list[dict[str, Any]]:
    """Device time of each step of a Program that does work: {"step", "function" or "op", "us"}, medians."""
    rows: dict[int, dict[str, Any]] = {}
    passes: list[tuple[Run, list[tuple[int, torch.cuda.Event]]]] = []
    for _ in range(ATTRIBUTION_RUNS):
        marks: list[tuple[int, torch.cuda.Event]] = []

        def observe(index: int, step: Any, read: Any, made: Any, marks: list[tuple[int, torch.cuda.Event]] = marks) -> None:
            if isinstance(step, Launch):
                rows[index] = {"step": index, "function": step.function}
            elif is_free(step, read, made):
                return
            else:
                rows[index] = {"step": index, "op": step.op}
            marks.append((index, mark()))

        before()
        spin = 40.0 + 25.0 * len(replay.program.forward)
        run = stopwatch.run(lambda: replay.forward(inputs, 0, observe=observe, fresh=fresh), spin)[1]
        passes.append((run, marks))
    passes[-1][0].end.synchronize()
    times: dict[int, list[float]] = {}
    for run, marks in passes:
        last = run.start
        for index, event in marks:
            times.setdefault(index, []).append(float(last.elapsed_time(event)) * 1000.0)
            last = event
    return [{**rows[index], "us": statistics.median(us)} for index, us in times.items()]
