"""A reference as a Program: traced on the trusted side at its own shapes, with what one forward of it costs at least and by the
model of time."""

from __future__ import annotations

from typing import Any

import torch

from rlkernel.errors import BrokenReference
from rlkernel.evaluator.devices import DeviceProfile
from rlkernel.evaluator.judging.costs.forward_costs import Costs, ForwardCosts
from rlkernel.evaluator.judging.costs.known import known_inputs
from rlkernel.evaluator.judging.costs.least_work import ALL, Matters
from rlkernel.evaluator.judging.costs.without_kernels import without_kernels
from rlkernel.evaluator.judging.references.arguments import arguments
from rlkernel.evaluator.judging.references.reference_calls import tensors_of
from rlkernel.evaluator.messages.judgement import KnownInput
from rlkernel.evaluator.program.operators import writes
from rlkernel.evaluator.program.replaced import attributes, hold, holding, newly_replaced
from rlkernel.evaluator.program.replay import Replay
from rlkernel.evaluator.program.schema import Op, Program
from rlkernel.evaluator.program.tensors import meta_tensors
from rlkernel.evaluator.trace.devices import CUDA
from rlkernel.evaluator.trace.forms import form_of
from rlkernel.evaluator.trace.lie import recording
from rlkernel.evaluator.trace.passing import decode_spec, encode_output
from rlkernel.evaluator.trace.pretrained import made_of_configs
from rlkernel.evaluator.trace.recorder import Recorder
from rlkernel.evaluator.trace.shims import answering_as
from rlkernel.processor_time import OutOfTime, at_most
from rlkernel.reference import Reference, where
from rlkernel.surroundings import surroundings
from rlkernel.types import Precision

TENSORS = "return tensors, or lists or dicts of them, or change an input"
"""What a forward that does neither should do."""
TRACE_SECONDS = 100.0
"""The processor time that construction and two forwards may take on tensors without data."""


class TracedReference:
    """A reference traced at its own shapes: its Program, its arguments, and what it does to its attributes."""

    def __init__(self, reference: Reference, profile: DeviceProfile, held: tuple[str, ...] = ()) -> None:
        self.name, self.held = reference.name, held
        """Attributes that forward replaces for its next call, as far as that is known."""
        self.recorder = Recorder(trusted=True)
        self.profile = profile
        self._counted: list[tuple[tuple[Precision, Matters, float], Costs]] = []
        with answering_as(profile), recording(self.recorder):
            self.variant, again = (arguments(reference, seed) for seed in (0, 1))
            self._examples = self.recorder.reading.examples(tensors_of(reference.inputs(0)))
        for what, function in (("init_args", "get_init_inputs"), ("inputs", "get_inputs")):
            if getattr(self.variant, what) != getattr(again, what):
                raise BrokenReference(
                    f"{reference.name}: {function} gives other numbers, shapes or dtypes with another seed; only the values of "
                    "tensors may be random"
                )
        self.recorder = Recorder(trusted=True)
        with answering_as(profile), without_kernels(reference.name), recording(self.recorder), surroundings(reference.defaults):
            try:
                with at_most(TRACE_SECONDS):
                    self._trace(reference.namespace)
            except OutOfTime as error:
                took = f"a call without data had not ended after {TRACE_SECONDS:g} s of processor time"
                raise BrokenReference(f"{self.name}: {took}{where(error, self.name)}; is there an end to its loops?") from None
        reference.check_fixed(self.program.state)
        self.asks_values = self.recorder.reading.asked
        """Whether forward does what values of its inputs say."""

    def _trace(self, namespace: dict[str, Any]) -> None:
        init_ids: list[int] = []
        args, kwargs = decode_spec(self.variant.init_args, self.recorder, init_ids, namespace)
        self.recorder.reading.inputs.clear()
        with made_of_configs(self.variant.init_args):
            model = namespace["Model"](*args, **kwargs)
        chosen = not model.training  # train mode is nobody's choice: modules begin in it
        hold(model, self.held)
        before = attributes(model)
        named = [*model.named_parameters(), *model.named_buffers()]
        state = {name: self.recorder.ids.of(tensor) for name, tensor in named}
        self.parameters = tuple(name for name, _ in model.named_parameters())
        self.given = sum(spec.numel() for spec in meta_tensors(self.variant.specs.inputs)) + sum(t.numel() for _, t in named)
        self.recorder.reading.state |= {self.recorder.ids.storage(number) for number in state.values()}
        for _, tensor in named:  # the module is moved to the GPU before it is called
            self.recorder.devices.move(tensor, CUDA)
        init = self.recorder.phase()
        forms = []
        for flip in (False, True):
            if flip:
                model.train(not model.training)
            ids: list[int] = []
            began = (len(self.recorder.ids), len(self.recorder.numbers))
            inputs = decode_spec(self.variant.inputs, self.recorder, ids, namespace)
            self.recorder.reading.drawn = dict(zip(map(self.recorder.ids.storage, ids), self._examples, strict=True))
            self.recorder.phase()
            self.recorder.reading.begin()
            with holding(model):
                returned = model(*inputs)
            output = encode_output(returned, self.recorder)
            reads, steps = self.recorder.reading.finish(), self.recorder.phase()
            if not tensors_of(returned) and not any(isinstance(step, Op) and writes(step) for step in steps):
                raise BrokenReference(f"{self.name}: forward returns {_words(returned)}; {TENSORS}")
            form = form_of(ids, [*reads, *steps], output, began)
            forms.append((form.rows, form.outer))
            if not flip:
                self.replaced = newly_replaced(before, model)
                self.keeps = not before.keys() <= state.keys()  # tensors as plain attributes
                self.program = Program((), tuple(init_ids), tuple(init), state, tuple(ids), tuple(steps), output, tuple(reads))
                self.told = tuple(self.recorder.reading.told)
                self.shapes = [tuple(self.recorder.ids.tensor(number).shape) for number in range(len(self.recorder.ids))]
        self.modal = not chosen and forms[0] != forms[1]

    def known(self) -> tuple[KnownInput, ...]:
        """The whole numbers that forward is given, as far as they are few and can be drawn alone."""
        return known_inputs(self.variant.specs.inputs, self._examples)

    def costs(self, precision: Precision, matters: Matters = ALL, part: float = 1.0) -> Costs:
        """What a forward costs, and the floors of those that matter. `matters`: the share that structural zeros leave of it;
        `part`: that of its products which lengths leave besides. What was asked before is known."""
        asked = precision, matters, part
        found = next((costs for question, costs in self._counted if question == asked), None)
        if found is None:
            found = self._count(precision, matters, part)
            self._counted.append((asked, found))
        return found

    def _count(self, precision: Precision, matters: Matters, part: float) -> Costs:
        inputs = meta_tensors(self.variant.specs.inputs)
        replay = Replay(self.program, torch.device("meta"), lambda *a: None)
        replay.init(meta_tensors(self.variant.specs.init_inputs), 0)
        replay.prepare((), 0)
        state = replay.state()
        parameters = {name: state[name] for name in self.parameters}
        forward = ForwardCosts(inputs, state, parameters, self.profile, precision, matters, part)
        return forward.of(self.program, tensors_of(replay.forward(inputs, 0, observe=forward.see)))


def _words(returned: Any) -> str:
    return "nothing" if returned is None else f"{type(returned).__name__}, in which no tensor is found"
