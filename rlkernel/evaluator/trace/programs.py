"""From calls that were traced to Programs: what prepares and what is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch

from rlkernel.evaluator.program.operators import allocates
from rlkernel.evaluator.program.references import Reference, bound_by, changed, needed_from, tensor_numbers
from rlkernel.evaluator.program.schema import Program, Step
from rlkernel.evaluator.program.values import TensorRef, rewrite
from rlkernel.evaluator.trace.calls import Call, Steady
from rlkernel.evaluator.trace.host_values import without_host_values
from rlkernel.evaluator.trace.recorder import Recorder
from rlkernel.types import Status

KEPT_FACTOR, KEPT_SLACK = 4, 1 << 20
"""What the first call makes may take that often the bytes of parameters, inputs and outputs, and so many bytes more. An honest
delta rule keeps 3.5 times as much as scratch memory."""
AT_EACH_CALL = ": compute from its arguments at each call, and keep no results"


class NotSteady(Exception):
    """What the calls leave behind cannot be part of a Program."""

    def __init__(self, status: Status, detail: str) -> None:
        super().__init__(detail)
        self.status = status


class Programs:
    """Makes the Programs of one candidate at one size. `start`: its functions, `__init__` and state."""

    def __init__(self, start: Program, recorder: Recorder) -> None:
        self._start = start
        self._recorder = recorder

    def usual(self, found: Steady) -> Program:
        """The candidate in its own mode. Raises NotSteady."""
        looking = [_looks(call) for call in found.prepared]
        if any(looking) and not _looks(found.call):
            raise NotSteady(Status.INCONSISTENT, f"after its first call forward does not look at its inputs{AT_EACH_CALL}")
        if not all(looking) and _looks(found.call):
            raise NotSteady(Status.INCONSISTENT, f"one of the first calls of forward does not look at its inputs{AT_EACH_CALL}")
        for call in found.prepared:
            self._bounded(found.call, call)
        return self._program(found.prepared, found, {})

    def other(self, found: Steady, usual: Steady) -> Program:
        """The candidate in the other of train and eval mode, in which it is called after the calls that prepared the usual mode.
        Raises NotSteady."""
        for call in found.prepared:
            self._bounded(found.call, call)
        program = self._program((*usual.prepared, *found.prepared), found, usual.latest)
        bound = _bound(program)
        asked = needed_from((*program.prepare, *program.forward), [program.output])
        if any(ref not in bound for ref in asked):
            raise NotSteady(Status.INCONSISTENT, "forward uses in one of train and eval mode what it has made in the other")
        return program

    def _program(self, prepared: tuple[Call, ...], found: Steady, renamed: Mapping[int, int]) -> Program:
        """`renamed`: tensor that the calls of the usual mode have left -> the carried one in whose place it stands."""

        def change(ref: Reference) -> Reference:
            return TensorRef(renamed.get(ref.number, ref.number)) if isinstance(ref, TensorRef) else ref

        def steps(given: tuple[Step, ...]) -> tuple[Step, ...]:
            return tuple(changed(step, change) for step in given) if renamed else given

        call = found.call
        before = [step for one in prepared for step in (*one.reads, *one.steps)]
        state = {name: renamed.get(number, number) for name, number in call.state_before.items()}
        left = {*found.carried.values(), *call.state_after.values()}
        return replace(
            self._start,
            inputs=call.inputs,
            forward=steps(without_host_values(call.steps, call.output, left)),
            output=rewrite(call.output, lambda value: change(value) if isinstance(value, TensorRef) else value),
            prepare=steps((*before, *call.reads)),
            prepare_inputs=tuple(one.inputs for one in prepared),
            carried={renamed.get(old, old): new for old, new in found.carried.items()},
            state_in_forward={name: number for name, number in state.items() if self._start.state.get(name) != number},
        )

    def _bounded(self, call: Call, prepared: Call) -> None:
        """Raises NotSteady if `call` keeps too much of what the call that prepared it has made."""
        made = range(prepared.began[0], call.began[0])
        kept = {ref.number for ref in call.form.outer if isinstance(ref, TensorRef) and ref.number in made}
        given = {*self._start.state.values(), *call.inputs, *_tensors_of(call)}
        size, allowed = (self._bytes(numbers) for numbers in (kept, given))
        allowed = KEPT_FACTOR * allowed + KEPT_SLACK
        if size > allowed:
            raise NotSteady(
                Status.UNTRACEABLE,
                f"the first call of forward keeps {size} bytes; it may keep {allowed}, "
                f"{KEPT_FACTOR} times what parameters, inputs and outputs take and {KEPT_SLACK >> 20} MiB",
            )

    def _bytes(self, numbers: set[int]) -> int:
        """What the memory of some tensors takes, each storage once."""
        storages = {self._recorder.ids.storage(number): self._recorder.ids.tensor(number) for number in numbers}
        with torch._C.DisableTorchFunction():
            return sum(tensor.untyped_storage().nbytes() for tensor in storages.values())


def _tensors_of(call: Call) -> set[int]:
    return tensor_numbers(needed_from((), [call.output]))


def _looks(call: Call) -> bool:
    """Whether a call does anything with its inputs; memory of their shape is nothing."""
    needed = needed_from([step for step in call.steps if not allocates(step)], [call.output])
    return any(TensorRef(number) in needed for number in call.inputs)


def _bound(program: Program) -> set[Reference]:
    """The tensors and numbers that a Program binds before, or while, it needs them."""
    numbers = {*program.init_inputs, *program.state.values(), *program.inputs}
    numbers |= {number for ids in program.prepare_inputs for number in ids}
    bound: set[Reference] = {TensorRef(number) for number in numbers}
    for step in (*program.once, *program.forward):
        bound.update(bound_by(step))
    return bound
