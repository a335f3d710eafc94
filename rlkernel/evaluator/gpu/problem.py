"""The trusted side of a problem on the GPU: inputs and models from seeds, how exact an answer must be, where its time goes.

Nothing here is alive while a candidate's kernels run, unless it is compared with its seed afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import nn

from rlkernel.evaluator.gpu import driver
from rlkernel.evaluator.gpu.exact import exact_outputs
from rlkernel.evaluator.gpu.guards import CUDA
from rlkernel.evaluator.gpu.stopwatch import Run, Stopwatch, mark, settle, wait
from rlkernel.evaluator.judging.comparison import Match, bits, compare_tensor
from rlkernel.evaluator.judging.reference_calls import (
    STRESS,
    call,
    constants,
    draw_seed,
    mapped,
    one_sided,
    perturb,
    state_of,
    stressed,
    tensors_of,
)
from rlkernel.evaluator.judging.roofline import is_free
from rlkernel.evaluator.judging.rounds import fates
from rlkernel.evaluator.judging.tolerance import OwnError, beside, own_error, tolerance
from rlkernel.evaluator.messages.children import StepTime
from rlkernel.evaluator.messages.gpu import Known
from rlkernel.evaluator.messages.judgement import InputFate, Stress, Tolerance
from rlkernel.evaluator.program.carried import carry
from rlkernel.evaluator.program.replay import Replay
from rlkernel.evaluator.program.schema import Launch, Op, Program
from rlkernel.evaluator.program.tensors import overlapping
from rlkernel.reference import Reference, load_reference

ATTRIBUTION_RUNS = 2
STEPS_SECONDS = 4.0
SEGMENT = 256
"""Steps that are timed behind one spin: a GPU's queue holds about a thousand launches and events."""
Marks = list[tuple[int | None, torch.cuda.Event]]
"""The end of each step, by its index; None: the start of what follows a spin."""
GAP_SPIN_US = 5_000.0
"""Far longer than the host takes to enqueue a reference that does not wait."""


def on_gpu(value: Any) -> Any:
    return mapped(value, lambda tensor: tensor.to(CUDA))


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of round."""

    other: bool = False
    """In the other of train and eval mode."""
    stress: Stress = Stress.NONE
    perturbed: bool = False
    """Constant parameters have other values."""

    @property
    def note(self) -> str:
        """Stands behind a miss: what is special about the round."""
        notes = ["in the other of train and eval mode"] if self.other else []
        notes += ["inputs scaled by 8"] if self.stress is Stress.SCALED else []
        notes += ["inputs centred and scaled by 8"] if self.stress is Stress.SHIFTED else []
        notes += ["constant parameters at other values"] if self.perturbed else []
        return f" ({', '.join(notes)})" if notes else ""


def name_of(kind: Kind) -> str:
    return "other" if kind.other else "stress" if kind.stress else "plain"


class GpuProblem:
    """A reference at full shape on this GPU."""

    def __init__(self, source: str, name: str, carried: Sequence[str] = ()) -> None:
        self.carried = carried
        """Attributes that forward replaces for its next call, see `program.carried`."""
        self.reference: Reference = load_reference(source, small=False, name=name)
        self._constants: tuple[str, ...] | None = None

    def inputs(self, seed: int, *, stress: Stress = Stress.NONE) -> list[Any]:
        with CUDA:
            made = on_gpu(self.reference.inputs(seed))
        return stressed(made, stress)

    def init_tensors(self, seed: int) -> list[torch.Tensor]:
        """The tensors among the constructor's arguments, as `model(seed)` gets them."""
        with CUDA:
            args, kwargs = self.reference.init_inputs(seed)
        return tensors_of(on_gpu([args, list(kwargs.values())]))

    def model(self, seed: int, *, other: bool = False, perturbed: bool = False) -> nn.Module:
        with CUDA:
            model = self.reference.model(seed)
            carry(model, self.carried)
            model = model.to(CUDA)
        if perturbed:
            if self._constants is None:  # once, because to look at values is to wait
                self._constants = constants(model)
            perturb(model, seed, self._constants)
        return model.train(not model.training) if other else model

    def study(self, program: Program, stopwatch: Stopwatch, *, stress: bool, tf32: bool) -> Known:
        """Measure what `Known` holds. `program`: the reference's own trace. `stress`: whether to try scaled inputs, which may
        cost the context. Raises what the reference raises."""
        errors, what_happens = self._errors()
        allowed = {"plain": tuple(_allowed(t, e, tf32=tf32) for t, e in errors)}
        allowed["other"] = allowed["plain"]
        init_seed = draw_seed()
        model, inputs = self.model(init_seed), self.inputs(draw_seed())
        output = tensors_of(call(model, inputs, 0))
        plain = all(bool(torch.isfinite(t).all()) for t in output if t.is_floating_point())
        plain &= all(math.isinf(error.huge) for _, error in errors)
        before = state_of(self.model(init_seed))
        changed = tuple(n for n, t in state_of(model).items() if n in before and not torch.equal(bits(t), bits(before[n])))
        _, run = stopwatch.run(lambda: call(model, inputs, 0), GAP_SPIN_US)
        rows = self._rows(program, stopwatch)
        kind = self._hardest() if stress else Kind()
        if kind.stress:  # a factor of 8 costs three bits at most
            allowed["stress"] = tuple(_allowed(t, e.times(STRESS), tf32=tf32) for t, e in errors)
        return Known(allowed, kind.stress, kind.perturbed, what_happens, changed, run.void, plain, tuple(rows))

    def _errors(self) -> tuple[list[tuple[torch.dtype, OwnError]], tuple[InputFate, ...]]:
        """Type of each output and the reference's own error in it; and what happens to the inputs."""
        seed, init_seed, forward_seed = draw_seed(), draw_seed(), draw_seed()
        model, inputs = self.model(init_seed), self.inputs(seed)
        found = tensors_of(call(model, inputs, forward_seed))
        what_happens = fates(tensors_of(inputs), tensors_of(self.inputs(seed)), found)
        del inputs
        model = self.model(init_seed)  # as it was before the call
        draw = partial(self.inputs, seed)
        exact = exact_outputs(model, draw, forward_seed, found) or found
        moved = exact_outputs(model, draw, forward_seed, found, nudged=True) or exact
        errors = [(f.dtype, _steady(own_error(f, e, m))) for f, e, m in zip(found, exact, moved, strict=True)]
        return errors, what_happens

    def _hardest(self) -> Kind:
        """The hardest round that leaves the reference finite."""
        inputs = self.inputs(draw_seed())
        floats = any(isinstance(x, torch.Tensor) and x.is_floating_point() for x in inputs)
        shifted = any(one_sided(x) for x in inputs)
        kinds = [Kind(stress=Stress.SHIFTED, perturbed=True)] * shifted + [Kind(stress=Stress.SCALED, perturbed=True)] * floats
        return next((kind for kind in [*kinds, Kind(perturbed=True)] if self._finite(kind)), Kind())

    def _finite(self, kind: Kind) -> bool:
        try:
            model = self.model(draw_seed(), perturbed=kind.perturbed)
            output = tensors_of(call(model, self.inputs(draw_seed(), stress=kind.stress), draw_seed()))
        except Exception:  # a reference may refuse such inputs in its own way
            if driver.lost_context() is not None:
                raise
            return False
        flags = [torch.isfinite(t).all() for t in output if t.is_floating_point()]
        return not flags or bool(torch.stack(flags).all())

    def look_closer(
        self, output: Any, expected: Any, model: nn.Module, inputs: list[Any], forward_seed: int, *, tf32: bool
    ) -> Match:
        """Judge one call by the reference's own error on these very inputs, which may be worse conditioned than most.

        `model`: as it was before the call that gave `expected`.
        """
        found, wanted = tensors_of(output), tensors_of(expected)
        draw = partial(mapped, inputs, torch.clone)
        exact = exact_outputs(model, draw, forward_seed, wanted) or wanted
        moved = exact_outputs(model, draw, forward_seed, wanted, nudged=True) or exact
        for index, (f, w, e, m) in enumerate(zip(found, wanted, exact, moved, strict=True)):
            error = own_error(w, e, m)
            measure = e if e.shape == w.shape and error.steady else w
            where = "output" if len(found) == 1 else f"output {index}"
            match = compare_tensor(
                f, w, measure, allowed=tolerance(w.dtype, _steady(error), tf32=tf32), overlapping=overlapping(f), where=where
            )
            if not match.matches and not error.steady and e.shape == w.shape:
                limit = beside(w.dtype, error, tf32=tf32)
                other = compare_tensor(f, w, e, allowed=limit, overlapping=overlapping(f), where=where)
                match = other if other.matches else match
            if not match.matches:
                return match
        return Match(True)

    def _rows(self, program: Program, stopwatch: Stopwatch) -> list[StepTime]:
        replay = Replay(program, CUDA, lambda *call: None)
        replay.init(self.init_tensors(0), 0)
        return step_times(replay, tensors_of(self.inputs(draw_seed())), stopwatch, {}, lambda: None)


def _steady(error: OwnError) -> OwnError:
    """No error of its own for a reference that jumps between values and has no exact result."""
    return error if error.steady else OwnError(spread=error.spread, huge=error.huge)


def _allowed(dtype: torch.dtype, own: OwnError, *, tf32: bool) -> Tolerance:
    """The candidate is compared with the reference, not with the exact result: both may err."""
    limit = tolerance(dtype, own, tf32=tf32)
    return replace(limit, norm=limit.norm + own.norm, element=limit.element + min(own.element, limit.element))


def step_times(
    replay: Replay,
    inputs: list[torch.Tensor],
    stopwatch: Stopwatch,
    fresh: dict[int, torch.Tensor],
    before: Callable[[], None],
    patience: float = 1.0,
) -> list[StepTime]:
    """Device time of each step of a Program that does work, the shorter of two runs.

    patience: factor on the spin that covers the host; a host that is held up for longer leaves gaps, which count as time.
    """
    work: dict[int, Launch | Op] = {}
    passes: list[tuple[Run, Marks]] = []
    span = patience * (40.0 + 25.0 * min(SEGMENT, len(replay.program.forward)))
    for _ in range(ATTRIBUTION_RUNS):
        marks: Marks = []

        def observe(index: int, step: Any, read: Any, made: Any, marks: Marks = marks) -> None:
            if not isinstance(step, Launch) and is_free(step, read, made):
                return
            work[index] = step
            marks.append((index, mark()))
            if len(marks) % SEGMENT == 0:
                settle(STEPS_SECONDS)
                stopwatch.spin(span)
                marks.append((None, mark()))

        before()
        # The first run covers the second, where the host is as fast as usual.
        spin = span if not passes or patience > 1 or len(replay.program.forward) > SEGMENT else 0.0
        run = stopwatch.run(lambda: replay.forward(inputs, 0, observe=observe, fresh=fresh), spin)[1]
        passes.append((run, marks))
    wait(passes[-1][0].end, STEPS_SECONDS)
    times: dict[int, list[float]] = {}
    for run, marks in passes:
        last = run.start
        for index, event in marks:
            if index is not None:
                times.setdefault(index, []).append(float(last.elapsed_time(event)) * 1000.0)
            last = event
    return [_step_time(index, work[index], min(us)) for index, us in times.items()]


def _step_time(index: int, step: Launch | Op, us: float) -> StepTime:
    return StepTime(index, us, function=step.function) if isinstance(step, Launch) else StepTime(index, us, op=step.op)
