"""A candidate's Program on the GPU: loaded kernels, guarded memory, tuned configurations, and ways to run it."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from rlkernel.evaluator.compile.binaries import Compiled
from rlkernel.evaluator.gpu import driver
from rlkernel.evaluator.gpu.guards import CUDA, Guards
from rlkernel.evaluator.gpu.places import Places, places
from rlkernel.evaluator.gpu.queue import Queue
from rlkernel.evaluator.gpu.stopwatch import settle, stream
from rlkernel.evaluator.gpu.tuning import NoConfig, fastest
from rlkernel.evaluator.judging.costs.roofline import is_free
from rlkernel.evaluator.judging.references.reference_calls import as_reference, hand_over, state_of
from rlkernel.evaluator.program.first_call import Touched, as_first, may_show
from rlkernel.evaluator.program.layouts import Strides
from rlkernel.evaluator.program.lifetimes import last_uses
from rlkernel.evaluator.program.operators import allocates
from rlkernel.evaluator.program.recurrent import flatten_weights
from rlkernel.evaluator.program.replay import Replay
from rlkernel.evaluator.program.schema import Config, Launch, Op, Program, Step
from rlkernel.evaluator.program.tensors import extent, flatten

KernelTable = Mapping[str, Mapping[int, Compiled]]
"""Step ("3" in forward, "init:0" in __init__) -> configuration -> facts of its binary."""


def binary_of(facts: Compiled) -> driver.Binary:
    """What the driver needs of a binary's facts."""
    return driver.Binary(
        facts.symbol, facts.parameters, facts.shared_bytes, facts.num_warps, facts.num_ctas, facts.global_scratch_size,
        facts.global_scratch_align, facts.tensordesc_meta,
    )  # fmt: skip


def _made_by(steps: Sequence[Step]) -> int:
    """How many tensors steps make, views among them."""
    return sum(len(step.outs) if isinstance(step, Op) else 1 for step in steps if not isinstance(step, Launch))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one guarded forward returned. Its tensors live as long as its guards."""

    output: Any
    inputs: list[torch.Tensor]
    guards: tuple[Guards, Guards]
    """The guards of this call, and those of the state that `__init__` made."""


class Subject:
    """One Program on the GPU, which is the candidate in one mode. `seconds` is how long any one forward may take."""

    def __init__(self, program: Program, kernels: KernelTable, loaded: dict[str, driver.Kernel], seconds: float) -> None:
        self.program = program
        self.seconds = seconds
        self._memory, self._state = Guards(), Guards()
        self._tensors = len(program.inputs) + _made_by(program.forward)
        """How many tensors one call comes to own."""
        self._queue = Queue(seconds)
        self.places = Places(self._memory, 0, {})
        """The memory that forward steps allocate in timed calls, see `Trials._trial`."""
        self.only: int | None = None
        """The launch that does all the work, if there is one and the outputs are memory that forward allocates."""
        self.steps = 0
        """The operators and launches of forward that do work."""
        self.choices: dict[int, int] = {}
        """The chosen configuration of each launch of forward, by step."""
        self._init_choices: dict[int, int] = {}
        """The configuration of each launch of `Program.once`, the first that compiles: -1 - i for step i."""
        self._kernels: dict[int, driver.Kernel] = {}
        """The loaded kernels, by the identity of the Program's Config."""
        self._touched: dict[int, Touched] = {}
        """What the binaries of a launch store to and load from, by the identity of its step."""
        self.tunes = False
        """Whether tuning may show in what the first call of forward returns."""
        self._first_call = False
        self._available: dict[int, list[int]] = {}
        for prefix, steps in (("init:", program.once), ("", program.forward)):
            for index, step in enumerate(steps):
                if isinstance(step, Launch):
                    table = kernels.get(f"{prefix}{index}", {})
                    for choice, facts in table.items():
                        self._kernels[id(step.configs[choice])] = loaded[facts.key]
                        touched = Touched(facts.stores, facts.loads)
                        self._touched[id(step)] = touched.also(self._touched.get(id(step), Touched()))
                    if prefix and table:
                        self._init_choices[-1 - index] = min(table)
                    if not prefix:
                        self._available[index] = sorted(table)
                        if self._available[index]:
                            self.choices[index] = self._available[index][0]
        self._choosers = program.choosers
        self._take_over()
        self._step_of = {id(config): index for index in self._available for config in self._configs(index)}
        self._tuning = False
        self._strides: dict[int, Strides] = {}
        """Where the trace says that results of operators lie."""
        self._uses = last_uses(program)
        self.replay = Replay(program, CUDA, self._launch, configs=self.choices, uses=self._uses)
        self._names: dict[str, str] = {}
        """What the candidate calls the reference's state."""

    def _configs(self, index: int) -> tuple[Config, ...]:
        step = self.program.forward[index]
        assert isinstance(step, Launch)
        return step.configs

    def _take_over(self) -> None:
        """Give each launch for which another one chooses that one's configuration."""
        self.choices.update({i: self.choices[first] for i, first in self._choosers.items() if first in self.choices})

    def _launch(self, launch: Launch, config: Config, args: dict[str, Any]) -> None:
        queue = stream().cuda_stream
        index = self._step_of.get(id(config))
        if self._tuning and index is not None and index == self._choosers[index] and len(self._available[index]) > 1:
            self._tune(index, launch, args, queue)
            self._take_over()
            self.replay.configs.update(self.choices)
            config = launch.configs[self.choices[index]]
            args = {**args, **config.args}
        kernel = self._kernels.get(id(config))
        if kernel is None:
            raise NoConfig
        if self._first_call and not self._tuning:
            as_first(launch, args, functools.partial(kernel.launch, config.grid, args, queue))
        else:
            kernel.launch(config.grid, args, queue)

    def _note_tuning(self, launch: Launch, config: Config, args: dict[str, Any]) -> None:
        """Stands in for a launch on tensors without data."""
        self.tunes |= may_show(launch, self._touched.get(id(launch), Touched()), args)

    def _tune(self, index: int, launch: Launch, args: dict[str, Any], queue: int) -> None:
        """Choose this launch's configuration by time. What it writes is void, because the forward that tunes is thrown away.

        Raises DriverError, Hung, NoConfig.
        """

        def run(choice: int) -> None:
            config = launch.configs[choice]
            self.replay.run_hook(config, index)
            self._kernels[id(config)].launch(config.grid, {**args, **config.args}, queue)

        self.choices[index] = fastest(self._available[index], run, self.seconds)

    @property
    def state(self) -> dict[str, torch.Tensor]:
        """Parameters and buffers by the reference's names, as the last call has left them."""
        return as_reference(self.replay.state(), self._names)

    @property
    def calls_before(self) -> int:
        """How many calls of forward prepare the module."""
        return len(self.program.prepare_inputs)

    def construct(
        self, init_inputs: list[torch.Tensor], seed: int, model: nn.Module, first_inputs: Sequence[torch.Tensor] = ()
    ) -> None:  # fmt: skip
        """Run `__init__` in guarded memory, replace weights by the reference's of the same name, shape and dtype, and prepare.

        first_inputs: of the calls that prepare. Raises Hung if a kernel keeps the host from reading a weight.
        """
        self._state = Guards(_made_by(self.program.once))
        configs = {**self._init_choices, **self.choices}
        self.replay = Replay(self.program, CUDA, self._launch, configs=configs, poison_seed=seed, uses=self._uses)
        self.replay.place, self.replay.strides = self._state.place, self._strides
        self.replay.before_reading = lambda: settle(self.seconds)
        self.replay.before_step = self._queue.before
        given = state_of(model)
        with torch.no_grad():
            state = self.replay.init([self._state.place(t) for t in init_inputs], seed, given)
            self._names = hand_over(state, self.replay.given)
            flatten_weights(self.program, self.replay.values)
            self.replay.prepare(first_inputs, seed)

    @property
    def tunable(self) -> bool:
        """Whether a launch of forward has several configurations."""
        return any(len(choices) > 1 for choices in self._available.values())

    def lay_out(self, init_inputs: list[torch.Tensor], inputs: list[torch.Tensor]) -> None:
        """Find out what memory forward allocates, without the GPU, and make it for the timed calls."""
        shapes: dict[int, tuple[Any, Any, torch.dtype]] = {}
        storages: dict[int, int] = {}
        made_here: set[int] = set()
        work: list[int] = []

        def observe(index: int, step: Any, read: Any, made: Any) -> None:
            if allocates(step) and step is self.program.forward[index]:
                shapes[index] = (made[0].size(), made[0].stride(), made[0].dtype)
                storages[index] = made[0].untyped_storage()._cdata
                made_here.add(made[0].untyped_storage()._cdata)
            elif isinstance(step, Launch) or not is_free(step, read, made):
                work.append(index)

        replay = Replay(self.program, torch.device("meta"), self._note_tuning, configs=self.choices, uses=self._uses)
        outputs: list[torch.Tensor] = []
        replay.noting = True
        with torch.no_grad():
            given = [torch.empty_like(t, device="meta") for t in inputs]
            replay.init([torch.empty_like(t, device="meta") for t in init_inputs], 0)
            replay.prepare(given, 0)
            flatten(replay.forward(given, 0, observe=observe), outputs)
        self._strides = replay.strides
        left = {replay.values[own].untyped_storage()._cdata for own in self.program.carried}
        shapes = {i: shape for i, shape in shapes.items() if storages[i] not in left}
        count = places(sum(extent(size, stride) * dtype.itemsize for size, stride, dtype in shapes.values()))
        self._memory = Guards(count * len(shapes))
        self.places = Places(self._memory, count, shapes)
        self.steps = len(work)
        alone = self.steps == 1 and isinstance(self.program.forward[work[0]], Launch)
        self.only = work[0] if alone and all(t.untyped_storage()._cdata in made_here for t in outputs) else None

    def tune(self, inputs: list[torch.Tensor], seed: int) -> None:
        """Run a first forward, which is thrown away, to choose configurations. Raises Hung, NoConfig."""
        self._tuning = True
        self.replay.place, self.replay.before_step = None, self._queue.before
        with torch.no_grad():
            self.replay.forward(inputs, seed, fresh=self.places[0])
        self._tuning = False
        settle(self.seconds)

    def forward(
        self, inputs: list[torch.Tensor], seed: int, *, skip: frozenset[int] = frozenset(), tuning: bool = False
    ) -> Outcome:
        """Enqueue one call with every tensor in guarded memory of its own, without the launches of functions in `skip`. `tuning`:
        as the first call of forward, which tunes."""
        guards, self._first_call = Guards(self._tensors), tuning
        self.replay.place, self.replay.before_step = guards.place, self._queue.before
        mine = [guards.place(t) for t in inputs]
        fresh = {index: guards.empty(t.size(), t.stride(), t.dtype) for index, t in self.places[0].items()}
        try:
            with torch.no_grad():
                output = self.replay.forward(mine, seed, skip=skip, fresh=fresh)
        finally:
            self._first_call = False
        return Outcome(output, mine, (guards, self._state))

    @property
    def memory(self) -> tuple[Guards, Guards]:
        """The guards of the memory that timed calls write to."""
        return self._memory, self._state

    def release(self) -> None:
        """Give all memory back now. This and its replay refer to each other, so Python would collect them much later."""
        self.replay.values.clear()
        self.places = Places(self._memory, 0, {})
        self._memory.release()
        self._state.release()

    @contextmanager
    def taking_back(self) -> Iterator[None]:
        """Around calls that are recorded and never run: what they leave to the next call has no contents and is taken back."""
        carried = {number: self.replay.values[number] for number in self.program.carried}
        yield
        self.replay.values.update(carried)

    def timed(self, inputs: list[torch.Tensor], seed: int, place: int) -> Any:
        """Make one call as it is timed, in memory that was laid out before; what operators make lies where they put it. Nothing
        waits between its steps."""
        self.replay.place = self.replay.before_step = None
        with torch.no_grad():
            return self.replay.forward(inputs, seed, fresh=self.places[place])
