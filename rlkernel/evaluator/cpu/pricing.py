"""Modelled time of a Program's steps at full shape, and of every configuration of an autotuned launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import torch

from rlkernel.evaluator.compile.binaries import MAX_CONFIGS
from rlkernel.evaluator.cpu.alike import Alike
from rlkernel.evaluator.cpu.interpreter import Interpreter, KernelFailed
from rlkernel.evaluator.cpu.memory import OutOfBounds
from rlkernel.evaluator.cpu.reached import Reached, Shares
from rlkernel.evaluator.devices import ANY_ROOM, DeviceProfile, Room
from rlkernel.evaluator.judging.costs.counts import Counts
from rlkernel.evaluator.judging.costs.known import bytes_of
from rlkernel.evaluator.judging.costs.least_written import written_bytes
from rlkernel.evaluator.judging.costs.operations import flops
from rlkernel.evaluator.judging.costs.operator_costs import NoCost
from rlkernel.evaluator.judging.costs.roofline import launch_us, operator_us
from rlkernel.evaluator.messages.children import StepTime
from rlkernel.evaluator.messages.judgement import KnownInput
from rlkernel.evaluator.program.kernel_text import KernelRejected
from rlkernel.evaluator.program.operators import writes
from rlkernel.evaluator.program.replay import Replay
from rlkernel.evaluator.program.schema import Config, Launch, Op, Program, Step
from rlkernel.evaluator.program.tensors import flatten, meta_tensors
from rlkernel.evaluator.program.variant import Specs
from rlkernel.types import Precision

WRITTEN = 0.95
"""Share of an output that extrapolated stores must reach, less what the sampling of programs may miss."""
REACHED = 0.999
"""Share of an output that they must reach together with what masks leave out of blocks that are written in part: of programs that
store whole blocks or nothing, nothing is missed."""

NO_ROOMS: Mapping[int, Room] = MappingProxyType({})
"""Where no binary was seen."""


@dataclass
class _Stored:
    """Bytes that are written into one storage."""

    written: float = 0.0
    reached: float = 0.0
    """These, and what masks leave out of blocks that are written in part."""
    by_kernel: bool = False
    by_chance: float = 0.0
    """How many more may be written than were extrapolated, see `costs.counts`."""


class Stores:
    """What the steps of one forward write, by storage."""

    def __init__(self) -> None:
        self._of: dict[int, _Stored] = {}

    def of_kernel(self, counts: Counts) -> None:
        """Count a launch."""
        for place, written in counts.stored.items():
            found = self._add(counts.storages[place], written, counts.left_out.get(place, 0.0))
            found.by_kernel, found.by_chance = True, found.by_chance + counts.by_chance.get(place, 0.0)

    def of_operator(self, step: Op, read: Sequence[torch.Tensor], made: Sequence[torch.Tensor], *, works: bool) -> None:
        """Count an operator. New memory may have the identity of some that was given up."""
        before = {tensor.untyped_storage()._cdata for tensor in read}
        for storage in {tensor.untyped_storage()._cdata for tensor in made} - before:
            self._of.pop(storage, None)
        for tensor in made if works else ():
            self._add(tensor.untyped_storage()._cdata, written_bytes(step, tensor, read))

    def _add(self, storage: int, written: float, left_out: float = 0.0) -> _Stored:
        found = self._of.setdefault(storage, _Stored())
        found.written += written
        found.reached += written + left_out
        return found

    def too_few(self, output: torch.Tensor, size: float) -> bool:
        """Whether launches write an output, and together with operators too little of its `size` bytes."""
        found = self._of.get(output.untyped_storage()._cdata, _Stored())
        return found.by_kernel and (found.written + found.by_chance < WRITTEN * size or found.reached < REACHED * size)

    def perhaps_too_few(self, output: torch.Tensor, size: float) -> bool:
        """Whether launches may write too little of an output, because chance decides whether that is seen."""
        found = self._of.get(output.untyped_storage()._cdata, _Stored())
        return found.by_chance > 0 and found.written - found.by_chance < WRITTEN * size


class Pricing:
    """One Program at full shape. Nothing is computed: launches are followed without memory, operators by their tables."""

    def __init__(
        self, program: Program, profile: DeviceProfile, precision: Precision, known: tuple[KnownInput, ...] = ()
    ) -> None:
        """known: the whole numbers that forward is given."""
        self.program = program
        self._known = known
        self.profile = profile
        self.precision = precision
        self._interpreter = Interpreter(program, profile)
        self._alike = Alike()
        self.shares = Shares()
        """What the forward that was priced last touches."""
        self.by_chance = False
        """Whether chance decides if too little of an output is seen to be written there."""

    @property
    def idle(self) -> dict[int, int]:
        """Kernels of which no program was found that writes, and the lines of their launches."""
        return self._interpreter.idle

    def _price(self, launch: Launch, config: Config, args: dict[str, Any], room: Room = ANY_ROOM) -> tuple[float, Counts]:
        """The time of a launch, and what it does; that of one that is alike where there was one. Raises as `rows` does."""
        interpreter = self._interpreter
        pending = self._alike.pending(launch, config, args, room, interpreter.known)
        if (found := pending.found) is not None:
            interpreter.count_again(launch, found[1])
            return found
        counts = interpreter.price(launch, config, args, room)
        counts.storages = [*pending.lying.storages]
        us = launch_us(counts, [*pending.lying.sizes], config.options.get("num_warps", 4), self.profile, room)
        pending.learn(us, counts, interpreter.machine.touched)
        return us, counts

    def orders(self, specs: Specs) -> dict[int, list[int]]:
        """Forward step -> its configurations from the fastest to the slowest, of launches that choose among several; those that
        fail when they are followed come last, and fail again if nothing else compiles."""
        found: dict[int, list[int]] = {}
        steps = {id(self.program.forward[index]): index for index, first in self.program.choosers.items() if index == first}

        def launch(step: Launch, config: Config, args: dict[str, Any]) -> None:
            index = steps.get(id(step))
            if index is None or len(step.configs) == 1:
                return
            prices = []
            for candidate in step.configs[:MAX_CONFIGS]:
                try:
                    prices.append(self._price(step, candidate, {**args, **candidate.args})[0])
                except (OutOfBounds, KernelFailed, KernelRejected, NoCost):
                    prices.append(float("inf"))
            found[index] = sorted(range(len(prices)), key=prices.__getitem__)

        replay, inputs = Replay(self.program, torch.device("meta"), launch), meta_tensors(specs.inputs)
        replay.init(meta_tensors(specs.init_inputs), 0)
        replay.prepare(meta_tensors(specs.inputs), 0)
        self._interpreter.known = bytes_of(self._known, inputs)
        replay.forward(inputs, 0, observe=self._forget)
        return found

    def _forget(self, index: int, step: Step, read: Sequence[torch.Tensor], made: Sequence[torch.Tensor]) -> None:
        """What an operator may write into is no longer known."""
        for tensor in read if isinstance(step, Op) and writes(step) else ():
            self._interpreter.known.pop(tensor.untyped_storage()._cdata, None)

    def rows(
        self, specs: Specs, configs: dict[int, int], written: Sequence[float] = (), rooms: Mapping[int, Room] = NO_ROOMS
    ) -> tuple[list[StepTime], bool]:
        """Price every step: the modelled times of the steps that work, and whether an output that launches write is written too
        little of.

        `configs`: of each launch, the configuration that was compiled. `written`: the bytes that the reference writes of each
        output. `rooms`: what the binary of each launch takes of a processor. Raises OutOfBounds, KernelFailed, KernelRejected,
        NoCost."""
        stores = Stores()
        rows, outputs = self.follow(meta_tensors(specs.init_inputs), meta_tensors(specs.inputs), configs, rooms, stores)
        sizes = written if len(written) == len(outputs) else [o.numel() * o.element_size() for o in outputs]
        self.by_chance = any(stores.perhaps_too_few(output, size) for output, size in zip(outputs, sizes, strict=True))
        return rows, any(stores.too_few(output, size) for output, size in zip(outputs, sizes, strict=True))

    def follow(
        self, init_inputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], configs: dict[int, int],
        rooms: Mapping[int, Room] = NO_ROOMS, stores: Stores | None = None,
    ) -> tuple[list[StepTime], list[torch.Tensor]]:  # fmt: skip
        """Follow every step on these tensors without data: the times, and the outputs. What it touches is in `shares` then, and
        what it writes in `stores`. Raises as `rows` does."""
        rows: list[StepTime] = []
        stores, reached = stores or Stores(), Reached()
        last: list[tuple[float, Counts]] = []
        places = {id(step): number for number, step in self.program.numbered_launches}

        def launch(step: Launch, config: Config, args: dict[str, Any]) -> None:
            last[:] = [self._price(step, config, args, rooms.get(places[id(step)], ANY_ROOM))]

        def observe(index: int, step: Step, read: Any, made: Any) -> None:
            if isinstance(step, Launch):
                us, counts = last[0]
                stores.of_kernel(counts)
                reached.of_kernel(counts)
                rows.append(
                    StepTime(index, us, function=step.function, operations=counts.operations, of_products=counts.of_products)
                )
            elif isinstance(step, Op):
                self._forget(index, step, read, made)
                us = operator_us(step, read, made, self.profile, self.precision)
                stores.of_operator(step, read, made, works=us > 0)
                reached.of_operator(index, read, made, works=us > 0)
                if us > 0:
                    work = flops(step, read, made) or float(max((t.numel() for t in [*read, *made]), default=0))
                    rows.append(StepTime(index, us, op=step.op, operations=work, of_products=work))

        replay = Replay(self.program, torch.device("meta"), launch, configs=configs)
        replay.init(init_inputs, 0)
        replay.prepare(inputs, 0)
        outputs: list[torch.Tensor] = []
        self._interpreter.known = bytes_of(self._known, inputs)
        state = replay.state()
        flatten(replay.forward(inputs, 0, observe=observe), outputs)
        self.shares = reached.shares(inputs, state, outputs)
        return rows, outputs
