"""The trusted side of a problem on the GPU: inputs and models from seeds, how exact an answer must be, where its time goes.

Nothing here is alive while a candidate's kernels run, unless it is compared with its seed afterwards.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import torch
from torch import nn

from rlkernel.evaluator.gpu import host_reads, on_host, showing
from rlkernel.evaluator.gpu.further import further_rounds
from rlkernel.evaluator.gpu.guards import CUDA
from rlkernel.evaluator.gpu.kinds import USUAL, Kind, name_of
from rlkernel.evaluator.gpu.measuring import Measuring, Seen
from rlkernel.evaluator.gpu.stopwatch import Run, Stopwatch, mark, settle, wait
from rlkernel.evaluator.judging.costs.roofline import is_free
from rlkernel.evaluator.judging.inputs.places import places
from rlkernel.evaluator.judging.inputs.placing import Draws, Placing, placed
from rlkernel.evaluator.judging.inputs.planting import idle, only_values, planted
from rlkernel.evaluator.judging.inputs.shown import put, put_in_state
from rlkernel.evaluator.judging.inputs.stress import Change, changed, changes
from rlkernel.evaluator.judging.references.blame import ignored
from rlkernel.evaluator.judging.references.outliers import with_outliers
from rlkernel.evaluator.judging.references.reference_calls import (
    balance_state,
    balanced,
    call,
    constants,
    draw_seed,
    laid_as_drawn,
    mapped,
    tensors_of,
)
from rlkernel.evaluator.judging.references.related import give_others
from rlkernel.evaluator.messages.children import StepTime
from rlkernel.evaluator.messages.gpu import Known
from rlkernel.evaluator.messages.judgement import NOWHERE, Places, Shown, Stress, Tolerance
from rlkernel.evaluator.program.codes import valued
from rlkernel.evaluator.program.replaced import hold
from rlkernel.evaluator.program.replay import Replay
from rlkernel.evaluator.program.schema import Launch, Op, Program
from rlkernel.reference import Reference, load_reference
from rlkernel.types import Precision

ATTRIBUTION_RUNS = 2
STEPS_SECONDS = 4.0
SEGMENT = 256
"""Steps that are timed behind one spin: a GPU's queue holds about a thousand launches and events."""
Marks = list[tuple[tuple[int, int] | None, torch.cuda.Event]]
"""The end of each step, by its index and identity; None: the start of what follows a spin."""
GAP_SPINS_US = (400.0, 5_000.0)
"""What the host is given to enqueue a reference: what most need, and far longer than any takes that does not wait."""


@dataclass(frozen=True, slots=True)
class _Usual:
    """What a call of the reference as the problem is written has shown; the fields are those of `Known`."""

    allowed: tuple[Tolerance, ...]
    """What is allowed of its outputs where they are timed."""
    reads: bool
    gaps: bool
    plain: bool
    host_us: float
    draw_seconds: float
    idle: tuple[int, ...]
    """The outputs in which it gave the same one number as another call did, on other inputs."""


def on_gpu(value: Any) -> Any:
    return mapped(value, lambda tensor: placed(tensor, CUDA))


class GpuProblem:
    """A reference at full shape on this GPU."""

    def __init__(self, source: str, name: str, replaced: Sequence[str] = ()) -> None:
        self.replaced = replaced
        """Attributes that forward replaces for its next call, see `program.replaced`."""
        self.reference: Reference = load_reference(source, small=False, name=name)
        self.source, self.name = source, name
        self._constants: dict[str, torch.Tensor] | None = None
        self._shapes: list[torch.Tensor] | None = None
        self._changes: dict[tuple[Stress, Places], tuple[Change | None, ...]] = {}
        self._draws, self._modules = Draws(self.reference.inputs, CUDA), Placing(CUDA)

    @cached_property
    def host(self) -> on_host.OnHost | None:
        """The reference on the host, see `on_host.on_host`: it is called there to see how long that takes, once. Raises what the
        reference raises."""
        return on_host.on_host(self)

    def inputs(self, seed: int, kind: Kind = USUAL) -> list[Any]:
        usual = self._draws(seed)
        drawn = planted(usual, seed) if kind.plants else usual
        drawn = drawn if kind.shown is None else put(kind.shown, drawn, seed)
        hard = drawn if kind.stress is Stress.NONE else changed(drawn, self._known_changes(kind.stress, kind.places))
        return laid_as_drawn(balanced(hard, kind.balance), usual)

    def places(self, stress: Stress, same: Places) -> Places:
        """What is done to single inputs under stress. `same`: what those get that are always the same."""
        if stress is Stress.NONE:
            return NOWHERE
        build = partial(self.model, draw_seed(), perturbed=True)
        found = places(build, self._draws, (draw_seed(), draw_seed(), draw_seed()), stress)
        holed = tuple(sorted({*found.holed, *same.holed}))
        apart = (*found.apart, *same.apart)
        return replace(found, holed=holed, turned=same.turned, moved=same.moved, apart=apart, rows=same.rows)

    def _known_changes(self, stress: Stress, there: Places) -> tuple[Change | None, ...]:
        """What is done to each input, found out once, because to look at values is to wait."""
        if (stress, there) not in self._changes:
            self._changes[stress, there] = changes(self._draws(draw_seed()), stress, there)
        return self._changes[stress, there]

    def shapes(self) -> list[torch.Tensor]:
        """Tensors without data that are as those of any draw, see the Program's arguments."""
        if self._shapes is None:
            self._shapes = [torch.empty_like(tensor, device="meta") for tensor in tensors_of(self.inputs(draw_seed()))]
        return self._shapes

    def ready(self, seed: int) -> None:
        """Draw what is slow to draw, so that all calls of `inputs` for this seed take the same time."""
        self._draws.ready(seed)

    def forget(self) -> None:
        """Give back what is kept of the seeds so far, which no other stay has."""
        self._draws.forget()

    def init_tensors(self, seed: int) -> list[torch.Tensor]:
        """The tensors among the constructor's arguments, as `model(seed)` gets them."""
        if self._modules.on_host is None:
            self.model(seed)  # whose call decides
        args, kwargs = self._modules(lambda: self.reference.init_inputs(seed))
        return tensors_of(on_gpu([args, list(kwargs.values())]))

    def model(self, seed: int, *, other: bool = False, perturbed: bool = False) -> nn.Module:
        model = self._modules(lambda: self.reference.model(seed))
        hold(model, self.replaced)
        with CUDA:
            model = model.to(CUDA)
        if perturbed:
            give_others(model, seed, self.reference.fixed, self._known_constants(model))
        return model.train(not model.training) if other else model

    def model_for(self, kind: Kind, seed: int) -> nn.Module:
        """The reference's module as this kind of round begins with it, in the mode that its constructor leaves it in."""
        model = self.model(seed, perturbed=kind.perturbed)
        if kind.balance is not None:
            balance_state(model, kind.balance)
        model = put_in_state(kind.shown, model, self.reference.fixed)
        return with_outliers(model, seed, self.reference.fixed) if kind.outliers else model

    def first_inputs(self, calls: int, seed: int) -> list[Any]:
        """The inputs of the calls that come before a module is judged, drawn from `seed`; none where there are no such calls."""
        return self.inputs(seed) if calls else []

    def called(self, model: nn.Module, usual: int, other: int, seed: int, *, flip: bool) -> nn.Module:
        """`model` after calls on `first_inputs`: `usual` in its own mode, and `other` after it was turned to the other of train
        and eval mode, if it is to `flip`."""
        for _ in range(usual):
            call(model, self.first_inputs(usual, seed), seed)
        if flip:
            model.train(not model.training)
            for _ in range(other):
                call(model, self.first_inputs(other, seed), seed)
        return model

    def _known_constants(self, model: nn.Module) -> dict[str, torch.Tensor]:
        """The constants that get other values, looked for in a module as it is drawn: once, because to look at values is to
        wait."""
        if self._constants is None:
            self._constants = constants(model, self.reference.fixed)
        return self._constants

    def ignored(self, kind: Kind, seeds: tuple[int, int, int], output: Any, prepared: Callable[[nn.Module], nn.Module]) -> str:
        """Which constant parameters explain a wrong output, if the round had them at other values. `seeds`: of `__init__`, of the
        inputs and of forward. `prepared`: makes the calls that come before a module is judged."""
        if not kind.perturbed:
            return ""
        init, inputs, forward = seeds
        return ignored(
            lambda: prepared(self.model(init, perturbed=True)),
            self._known_constants(self.model(init)),
            lambda: self.inputs(inputs, kind), forward, tensors_of(output),
        )  # fmt: skip

    def study(self, program: Program, stopwatch: Stopwatch, precision: Precision, *, stress: bool, shown: bool) -> Known:
        """Measure what `Known` holds. `program`: the reference's own trace. `stress`, `shown`: whether to try scaled inputs, and
        such as show what no draw does, which may cost the context. Raises what the reference raises."""
        measuring = Measuring(self, precision)
        usual = measuring.see(Kind())
        allowed = {"plain": measuring.limits(usual)}
        allowed["other"] = allowed["perturbed"] = measuring.limits(usual.without_noise)
        called = self._usual_call(measuring, usual, stopwatch)
        allowed["timed"] = called.allowed
        rows = self._rows(program, stopwatch)
        same = showing.found(partial(on_host.always_same, self), NOWHERE) if shown else NOWHERE
        kind, hard = measuring.hardest(usual, idle=called.idle, same=same) if stress else (Kind(), usual)
        if kind.perturbed:
            allowed[name_of(kind)] = measuring.limits(hard)
        balance, beyond = measuring.out_of_range(usual) if stress else (None, usual)
        if balance is not None:
            allowed["range"] = measuring.limits(beyond)
        seen = {"plain": usual, "range": beyond if balance else usual.without_noise, name_of(kind): hard}
        further, hurried = further_rounds(self, measuring, usual, (kind, hard), program) if shown else ([], False)
        shows = {name_of(one): found for one, found in further}
        allowed |= {name: measuring.limits(found) for name, found in shows.items()}
        return Known(
            allowed, kind.stress, balance, kind.perturbed, usual.fates, tuple(usual.state), called.reads, called.gaps,
            called.plain, tuple(rows), measuring.state_limits(seen, shows), any(one.blurs for one in seen.values()),
            called.host_us, called.draw_seconds, kind.plants, kind.places,
            Shown.of(one.shown for one, _ in further if one.shown is not None),
            outliers=any(one.outliers for one, _ in further), mild=tuple(one.stress for one, _ in further if one.mild),
            hurried=hurried,
        )  # fmt: skip

    def _usual_call(self, measuring: Measuring, usual: Seen, stopwatch: Stopwatch) -> _Usual:
        """Call the reference as the problem is written. No tensor outlives this: a study computes in float64 before and after."""
        init_seed, seed = draw_seed(), draw_seed()
        model, begun = self.model(init_seed), time.perf_counter()
        inputs = self.inputs(seed)
        draw_seconds = time.perf_counter() - begun
        with host_reads.HostReads() as reads:
            output = tensors_of(call(model, inputs, 0))
        timed = measuring.timed_limits(usual, output, init_seed, seed)
        plain = all(bool(torch.isfinite(valued(t)).all()) for t in output if t.is_floating_point())
        plain &= all(math.isinf(error.huge) for error in usual.errors)
        still = idle(usual.only, only_values(output))
        for spin_us in GAP_SPINS_US:
            run = self._run(model, inputs, reads.noted, (init_seed, seed), stopwatch, spin_us)
            if not run.void:
                break
        return _Usual(timed, bool(reads.noted), run.void, plain, run.host_us, draw_seconds, still)

    def _run(
        self, model: nn.Module, inputs: list[Any], noted: list[Any], seeds: tuple[int, int], stopwatch: Stopwatch, spin_us: float
    ) -> Run:  # fmt: skip
        """A timed call of the reference, as candidates are timed beside it. seeds: of the model and of its inputs, which are made
        anew where the host reads of the GPU what was `noted`, because calls may have changed them."""
        if not noted:
            return stopwatch.run(lambda: call(model, inputs, 0), spin_us)[1]
        again, given = self.model(seeds[0]), self.inputs(seeds[1])
        return stopwatch.run(lambda: host_reads.answered(again, given, 0, noted), spin_us)[1]

    def _rows(self, program: Program, stopwatch: Stopwatch) -> list[StepTime]:
        replay = Replay(program, CUDA, lambda *call: None)
        replay.init(self.init_tensors(0), 0)
        replay.prepare((), 0)
        return step_times(replay, tensors_of(self.inputs(draw_seed())), stopwatch, {}, lambda: None)


def step_times(
    replay: Replay,
    inputs: list[torch.Tensor],
    stopwatch: Stopwatch,
    fresh: Mapping[int, torch.Tensor],
    before: Callable[[], None],
    patience: float = 1.0,
) -> list[StepTime]:
    """Device time of each step of a Program that does work, the shorter of two runs.

    patience: factor on the spin that covers the host; a host that is held up for longer leaves gaps, which count as time.
    """
    work: dict[tuple[int, int], Launch | Op] = {}
    passes: list[tuple[Run, Marks]] = []
    span = patience * (40.0 + 25.0 * min(SEGMENT, len(replay.program.forward)))
    for _ in range(ATTRIBUTION_RUNS):
        marks: Marks = []

        def observe(index: int, step: Any, read: Any, made: Any, marks: Marks = marks) -> None:
            if not isinstance(step, Launch) and is_free(step, read, made):
                return
            work[index, id(step)] = step  # a launch's hook has the launch's index
            marks.append(((index, id(step)), mark()))
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
    times: dict[tuple[int, int], list[float]] = {}
    for run, marks in passes:
        last = run.start
        for place, event in marks:
            if place is not None:
                times.setdefault(place, []).append(float(last.elapsed_time(event)) * 1000.0)
            last = event
    return [_step_time(place[0], work[place], min(us)) for place, us in times.items()]


def _step_time(index: int, step: Launch | Op, us: float) -> StepTime:
    return StepTime(index, us, function=step.function) if isinstance(step, Launch) else StepTime(index, us, op=step.op)
