"""What host code learns when it asks for a tensor's value.

computed from literals alone     the value, computed here and now: `torch.tensor(shape).prod().item()`
computed from the weights        a number that is known when the weights are (`host_numbers`): `self.scale.item()`
computed from a reference's      what the problem's own `get_inputs` draws, with weights as they are drawn: where a segment ends,
inputs                           how many tokens choose an expert. A trace of a reference says what it costs, and no answer is
                                 computed with it
anything else                    Untraceable, in words
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.utils._python_dispatch import _disable_current_modes

from rlkernel.evaluator.program.operators import writes
from rlkernel.evaluator.program.replay import Replay
from rlkernel.evaluator.program.schema import Launch, Op, Program, Step
from rlkernel.evaluator.program.values import TensorRef
from rlkernel.evaluator.trace.drawn_values import MAX_DRAWN, DrawnValues
from rlkernel.evaluator.trace.host_numbers import UnknownValue, Untraceable
from rlkernel.evaluator.trace.touched import draws, given_to, made_by, takes_numbers, written_by

if TYPE_CHECKING:
    from rlkernel.evaluator.trace.recorder import Recorder

MAX_FOLDED = 1 << 20
"""The most elements that a tensor may have on the way to a value that is computed while tracing."""
OF_INPUTS, OF_WEIGHTS = 0, 1
"""Seeds of what is drawn: the same for each question, in train and in eval mode."""
INPUT = "the host reads a tensor's value, which depends on the inputs; let a kernel or a torch operator take the tensor itself"
MADE = "the host reads a tensor's value, which a kernel computes; let a kernel or a torch operator take the tensor itself"
CHANGED = "the host reads a parameter or buffer that forward may change; load it in the kernel"


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where a tensor's values come from."""

    steps: list[Step]
    """What must run for them, in order."""
    leaves: set[int]
    """Tensors among their arguments that no such step makes."""
    blocked: str
    """Why they cannot be known on the host; empty if they can."""


@dataclass(frozen=True, slots=True)
class _Touched:
    """What a step touches."""

    step: Step
    """Kept, so that no other step has its identity."""
    given: list[int]
    made: list[int]
    writes: bool


class Reading:
    """Answers for one trace."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.steps: list[Step] = []
        """What must run before the call in progress, for the numbers that it reads."""
        self.call_began: int | None = None
        """How many steps there were before the call of forward in progress; None in `__init__`."""
        self.inputs: set[int] = set()
        """The memory of the inputs of all calls."""
        self.state: set[int] = set()
        """The memory of parameters and buffers."""
        self.drawn: dict[int, Callable[[], torch.Tensor]] | None = None
        """The memory of a reference's input -> how to draw it; an input that was made inside the trace is not named. None: values
        of inputs stay unknown, as they are to a candidate."""
        self.told: list[int] = []
        """The whole numbers that were told of what a reference's inputs decide, in all calls."""
        self._read: set[int] = set()
        """The memory that the host has read in the call in progress."""
        self._values = DrawnValues(recorder.ids)
        self._touched: dict[int, _Touched] = {}
        """What steps touch, by their identity: each question goes back through all of them."""

    @property
    def asked(self) -> bool:
        """Whether the host of a reference has asked for what its inputs decide."""
        return self._values.asked

    def begin(self) -> None:
        """A call of forward begins."""
        self.steps, self._read, self.call_began = [], set(), len(self._recorder.history)
        self._values.begin()

    def finish(self) -> list[Step]:
        """The steps for the numbers that the call has read. Raises Untraceable if the call itself may change them."""
        for step in self._recorder.history[self.call_began :] if self._read else []:
            touched = given_to(step) if isinstance(step, Launch) else written_by(step)
            if any(self._recorder.ids.storage(number) in self._read for number in touched):
                raise UnknownValue(CHANGED)
        return self.steps

    def answer(self, func: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
        """What a question about values gives. Raises Untraceable."""
        tensors = [value for value in [*args, *kwargs.values()] if isinstance(value, torch.Tensor)]
        origins = [self._origin(self._recorder.ids.of(tensor)) for tensor in tensors]
        blocked = next((origin.blocked for origin in origins if origin.blocked), "")
        if blocked == INPUT and self.drawn is not None:
            real = {id(tensor): self._example(origin, tensor) for origin, tensor in zip(origins, tensors, strict=True)}
            self.told += _whole(found := self._on_real(func, args, kwargs, real))
            return found
        if blocked:
            raise UnknownValue(blocked)
        if all(self._constant(origin, tensor) for origin, tensor in zip(origins, tensors, strict=True)):
            real = {id(tensor): self._computed(origin, tensor) for origin, tensor in zip(origins, tensors, strict=True)}
            return self._on_real(func, args, kwargs, real)
        if len(tensors) != 1 or tensors[0].numel() != 1:
            if self._recorder.trusted:
                real = {id(tensor): self._example(origin, tensor) for origin, tensor in zip(origins, tensors, strict=True)}
                return self._on_real(func, args, kwargs, real)
            raise UnknownValue("the host reads a tensor of parameters; read one element, or load it in the kernel")
        return self._number(func, tensors[0], origins[0])

    def number_of(self, tensor: torch.Tensor, question: Callable[[torch.Tensor], torch.Tensor]) -> int:
        """A whole number that a question gives of a reference's tensor, as far as its inputs decide it. Raises Untraceable."""
        origin = self._origin(self._recorder.ids.of(tensor))
        if origin.blocked and (origin.blocked != INPUT or self.drawn is None):
            raise UnknownValue(origin.blocked)
        with _disable_current_modes():
            self.told.append(number := int(question(self._example(origin, tensor))))
        return number

    def _on_real(self, func: Callable[..., Any], args: Any, kwargs: dict[str, Any], real: dict[int, torch.Tensor]) -> Any:
        """The answer on tensors with data, by the identity of those without."""
        with _disable_current_modes():
            return func(*[real.get(id(arg), arg) for arg in args], **{k: real.get(id(v), v) for k, v in kwargs.items()})

    def _example(self, origin: _Origin, tensor: torch.Tensor) -> torch.Tensor:
        """The values that a tensor of a reference has, if inputs and weights are drawn as the problem's author draws them. Raises
        Untraceable for what depends on anything else, and for too many elements."""
        drawn, known, storage = self.drawn or {}, self._values.known, self._recorder.ids.storage
        leaves = sorted(origin.leaves)
        numbers = any(takes_numbers(step) for step in origin.steps)
        if numbers or any(leaf not in known and storage(leaf) not in drawn for leaf in leaves):
            raise UnknownValue(INPUT)
        memory = {storage(out): self._recorder.ids.tensor(out).numel() for step in origin.steps for out in made_by(step)}
        if sum(memory.values()) > MAX_DRAWN:
            many = f"the host needs a value that comes from more than {MAX_DRAWN:,} elements"
            raise UnknownValue(f"{many}: make the inputs smaller, or choose by torch.where instead of x[mask]")
        given = {leaf: known[leaf] if leaf in known else drawn[storage(leaf)]() for leaf in leaves}
        seed = OF_INPUTS if self.drawn is None else OF_WEIGHTS
        keeps = self.drawn is not None
        return self._values.compute(self._recorder.ids.of(tensor), origin.steps, given, seed, keeps=keeps)

    def examples(self, made: Sequence[torch.Tensor]) -> list[Callable[[], torch.Tensor]]:
        """How to draw the arguments that a traced `get_inputs` has made. Each draw may raise Untraceable."""
        return [partial(self._example, self._origin(self._recorder.ids.of(tensor)), tensor) for tensor in made]

    def _number(self, func: Callable[..., Any], tensor: torch.Tensor, origin: _Origin) -> Any:
        """The number in a tensor that is computed from weights."""
        name = getattr(func, "__name__", "")
        if name in ("__bool__", "is_nonzero", "equal", "allclose") or tensor.dtype == torch.bool or tensor.is_complex():
            raise UnknownValue("host code branches on a parameter's value; use torch.where, or load it in the kernel")
        if name in ("numpy", "__array__", "__index__"):
            raise UnknownValue("the host reads a parameter as an array or a size; use .item(), or load it in the kernel")
        began, number = self.call_began, self._recorder.ids.of(tensor)
        if began is not None:
            known, own = {id(step) for step in self.steps}, {id(step) for step in self._recorder.history[began:]}
            mine = [step for step in origin.steps if id(step) in own]
            if any(draws(step) for step in mine):
                raise UnknownValue("the host reads a random number that forward draws; draw it in a tensor")
            if any(isinstance(step, Op) and writes(step) for step in mine):
                raise UnknownValue(CHANGED)
            self.steps += [step for step in mine if id(step) not in known]
            made = {out for step in mine for out in made_by(step)}
            asked = {ref for step in mine for ref in given_to(step)} | {number}
            self._read |= {self._recorder.ids.storage(ref) for ref in asked - made}
        whole = not tensor.is_floating_point()
        found = self._recorder.numbers.made("item", (TensorRef(number),), whole=whole)
        if name in ("__int__", "__float__"):
            return self._recorder.numbers.apply(name.strip("_"), found)
        shape: Any = found
        for _ in range(tensor.dim() if name == "tolist" else 0):
            shape = [shape]
        return shape

    def _constant(self, origin: _Origin, tensor: torch.Tensor) -> bool:
        """Whether a value is the same for all weights and inputs."""
        if origin.leaves or isinstance(tensor, nn.Parameter) or any(draws(step) or takes_numbers(step) for step in origin.steps):
            return False
        numbers = {self._recorder.ids.of(tensor), *(out for step in origin.steps for out in made_by(step))}
        return not any(
            isinstance(self._recorder.ids.tensor(number), nn.Parameter) or self._recorder.ids.storage(number) in self.state
            for number in numbers
        )

    def _computed(self, origin: _Origin, tensor: torch.Tensor) -> torch.Tensor:
        """The values of a tensor that are the same whatever is drawn. Raises Untraceable for a large one."""
        if any(self._recorder.ids.tensor(out).numel() > MAX_FOLDED for step in origin.steps for out in made_by(step)):
            raise Untraceable("the host computes with a large tensor; use numbers, or a tensor that stays on the GPU")
        program = Program((), (), (), {}, (), tuple(origin.steps), TensorRef(self._recorder.ids.of(tensor)))
        with _disable_current_modes(), torch.no_grad():
            found = Replay(program, torch.device("cpu"), lambda *call: None).forward([], 0)
        assert isinstance(found, torch.Tensor)
        return found

    def _touched_by(self, step: Step) -> _Touched:
        found = self._touched.get(id(step))
        if found is None:
            found = _Touched(step, given_to(step), made_by(step), isinstance(step, Op) and writes(step))
            self._touched[id(step)] = found
        return found

    def _origin(self, number: int) -> _Origin:
        """Follow a tensor's values back through what was recorded."""
        storage = self._recorder.ids.storage
        if self.drawn is not None:
            self._values.forget_written(self._recorder.history)
        known = self._values.known
        if number in known:
            return _Origin([], {number}, INPUT)
        needed, memory = {number}, {storage(number)}
        steps: list[Step] = []
        blocked = ""
        for step in reversed(self._recorder.history):
            touches = self._touched_by(step)
            refs, made = touches.given, touches.made
            if isinstance(step, Launch):  # one of an earlier call may have changed a weight: the number is read after it
                touched = {storage(ref) for ref in refs} & memory
                blocked = blocked or (MADE if touched - self.state else "")
                continue
            writing = touches.writes and any(storage(ref) in memory for ref in refs)
            if not (writing or needed.intersection(made) or any(storage(out) in memory for out in made)):
                continue
            if not writing and made and all(out in known for out in made):
                continue
            steps.append(step)
            needed.update(refs, made)
            memory.update(storage(ref) for ref in refs)
        steps.reverse()
        leaves = _leaves(steps, number)
        return _Origin(steps, leaves, INPUT if memory & self.inputs or not leaves.isdisjoint(known) else blocked)


def _leaves(steps: Sequence[Step], number: int) -> set[int]:
    """The tensors that steps need and that none has made before: also what one changes, or returns as it is."""
    made, leaves = set[int](), set[int]()
    for step in steps:
        leaves.update(ref for ref in given_to(step) if ref not in made)
        made.update(made_by(step))
    return leaves if number in made else leaves | {number}


def _whole(answer: Any) -> list[int]:
    """The whole numbers of an answer, which may be lists of them."""
    if isinstance(answer, list):
        return [number for one in answer for number in _whole(one)]
    return [answer] if type(answer) is int else []
