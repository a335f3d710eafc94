"""A reference as a Program: traced on the trusted side at its own shapes, with what one forward of it costs at least and by the
model of time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from rlkernel.errors import BrokenReference
from rlkernel.evaluator.devices import DeviceProfile
from rlkernel.evaluator.judging.costs.halves import HALF, Halves, seen_in_half
from rlkernel.evaluator.judging.costs.known import known_inputs
from rlkernel.evaluator.judging.costs.least_read import LeastRead
from rlkernel.evaluator.judging.costs.least_work import ALL, LEAST, Matters, least_share
from rlkernel.evaluator.judging.costs.least_written import LeastWritten
from rlkernel.evaluator.judging.costs.operations import flops, least_flops, sum_length
from rlkernel.evaluator.judging.costs.operator_costs import NoCost, dense_bytes, moved_bytes, of_first_bytes, read_bytes, taken
from rlkernel.evaluator.judging.costs.roofline import floor_us, is_free, operator_us, physical_floor_us
from rlkernel.evaluator.judging.costs.without_kernels import without_kernels
from rlkernel.evaluator.judging.references.arguments import arguments
from rlkernel.evaluator.judging.references.reference_calls import tensors_of
from rlkernel.evaluator.messages.judgement import NOTHING, KnownInput, Reads
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
from rlkernel.reference import Reference
from rlkernel.surroundings import surroundings
from rlkernel.types import OpFact, Precision


@dataclass(frozen=True, slots=True)
class Costs:
    """The reference's modelled cost at full shape."""

    us: float
    ops: tuple[OpFact, ...]
    floor_us: float
    measured_floor_us: float
    """The floor of a measured time, see `roofline.physical_floor_us`."""
    products: float = 0.0
    """Operations of matrix products, convolutions and their like."""
    least_share: float = LEAST
    """The share of them that a candidate must do where they are counted."""
    unpriced: tuple[str, ...] = ()
    """Operators that the model of time does not know: then no time can be modelled."""
    written: tuple[float, ...] = ()
    """The bytes that forward writes of each output, see `least_written`."""
    reads: Reads = NOTHING
    """What forward needs to the last element, see `least_read`."""


class TracedReference:
    """A reference traced at its own shapes: its Program, its arguments, and what it does to its attributes."""

    def __init__(self, reference: Reference, profile: DeviceProfile, held: tuple[str, ...] = ()) -> None:
        self.name, self.held = reference.name, held
        """Attributes that forward replaces for its next call, as far as that is known."""
        self.recorder = Recorder(trusted=True)
        self.profile = profile
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
            self._trace(reference.namespace)
        reference.check_fixed(self.program.state)

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
            if not tensors_of(returned):
                raise BrokenReference(
                    f"{self.name}: forward returns {_words(returned)}; return tensors, or lists or dicts of them"
                )
            output = encode_output(returned, self.recorder)
            reads, steps = self.recorder.reading.finish(), self.recorder.phase()
            form = form_of(ids, [*reads, *steps], output, began)
            forms.append((form.rows, form.outer))
            if not flip:
                self.replaced = newly_replaced(before, model)
                self.keeps = not before.keys() <= state.keys()  # tensors as plain attributes
                self.program = Program((), tuple(init_ids), tuple(init), state, tuple(ids), tuple(steps), output, tuple(reads))
                self.shapes = [tuple(self.recorder.ids.tensor(number).shape) for number in range(len(self.recorder.ids))]
        self.modal = not chosen and forms[0] != forms[1]

    def known(self) -> tuple[KnownInput, ...]:
        """The whole numbers that forward is given, as far as they are few and can be drawn alone."""
        return known_inputs(self.variant.specs.inputs, self._examples)

    def costs(self, precision: Precision, matters: Matters = ALL, part: float = 1.0) -> Costs:
        """What a forward costs, and the floors of those that matter. `matters`: the share that structural zeros leave of it;
        `part`: that of its products which lengths leave besides."""
        rows: dict[str, list[float]] = {}
        inputs = meta_tensors(self.variant.specs.inputs)
        storages = {t.untyped_storage()._cdata: 0.0 for t in inputs}
        dependent = set(storages)
        """The storages whose contents depend on the inputs."""
        parts = matters.inputs or (1.0,) * len(inputs)
        shares = {t.untyped_storage()._cdata: part for t, part in zip(inputs, parts, strict=True)}

        products: dict[torch.dtype, float] = {}
        needed, mattering, unpriced = list[float](), list[float](), list[str]()

        def observe(index: int, step: Any, read: Any, made: Any) -> None:
            if not isinstance(step, Op):
                return
            least.see(step, read, made)
            least_read.see(step, read, made)
            if any(t.untyped_storage()._cdata in dependent for t in read):
                dependent.update(t.untyped_storage()._cdata for t in [*made, *(read if writes(step) else ())])
            halves.see(step, read, made)
            if work := flops(step, read, made):
                dtype = HALF if made[0].dtype is torch.float32 and halves.multiplied(read) else made[0].dtype
                products[dtype] = products.get(dtype, 0.0) + work
                needed.append(least_flops(step, read, made))
                share = matters.steps.get(index)
                mattering.append(share.operations(work, sum_length(step, read, made)) if share else work)
            try:
                us = operator_us(step, read, made, self.profile, precision)
            except NoCost:
                us = self.profile.launch_us
                unpriced.append(step.op)
            if us > 0:
                rows.setdefault(".".join(step.op.split(".")[:2]), []).append(us)
            if not is_free(step, read, made):
                used = taken(step, read)
                for tensor in used:
                    key = tensor.untyped_storage()._cdata
                    if key in storages:
                        most = min(read_bytes(step, tensor), moved_bytes(step, [tensor, *used[1:]], made))
                        if tensor is used[0]:
                            most = min(most, of_first_bytes(step, made))
                        storages[key] = max(storages[key], most * shares[key])

        replay = Replay(self.program, torch.device("meta"), lambda *a: None)
        replay.init(meta_tensors(self.variant.specs.init_inputs), 0)
        replay.prepare((), 0)
        least, halves = LeastWritten([*inputs, *replay.state().values()]), Halves()
        state = replay.state()
        least_read = LeastRead(inputs, {name: state[name] for name in self.parameters})
        outputs = tensors_of(replay.forward(inputs, 0, observe=observe))
        total = sum(sum(us) for us in rows.values())
        ops = [OpFact(op, len(us), sum(us), sum(us) / total) for op, us in rows.items()]
        ops.sort(key=lambda fact: -fact.us)
        moved = min(_distinct_bytes(outputs), sum(least.of(outputs)))
        matter = part * sum(mattering) / max(1.0, sum(products.values()))
        if seen_in_half(outputs):
            products[HALF] = products.get(HALF, 0.0) + products.pop(torch.float32, 0.0)
        floor = floor_us(sum(storages.values()), moved, products, self.profile, precision, matter)
        made = {o.untyped_storage()._cdata: dense_bytes(o) for o in outputs}
        written = sum(size for key, size in made.items() if key in dependent and key not in storages)
        physical = physical_floor_us(written, self.profile)
        least_of, unknown = least_share(self.program, matter if matters.steps or part < 1.0 else 1.0), tuple(unpriced)
        reads = least_read.of(outputs) if not matters.steps else NOTHING
        return Costs(total, tuple(ops), floor, physical, sum(needed), least_of, unknown, least.of(outputs), reads)


def _words(returned: Any) -> str:
    return "nothing" if returned is None else f"{type(returned).__name__}, in which no tensor is found"


def _distinct_bytes(tensors: list[torch.Tensor]) -> int:
    """The bytes of the memory that tensors lie in, where several may lie in the same."""
    found: dict[int, tuple[int, int]] = {}
    for tensor in tensors:
        storage = tensor.untyped_storage()
        found[storage._cdata] = storage.nbytes(), found.get(storage._cdata, (0, 0))[1] + dense_bytes(tensor)
    return sum(min(whole, parts) for whole, parts in found.values())
