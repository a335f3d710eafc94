"""The trusted side of an evaluation: what a problem's reference wants, costs and gives.

A long-lived child; it runs references and compares outputs, never a candidate's code. Seeds come from a key that is made when
the candidate was traced (`rlkernel.evaluator.draws`), so nothing that a candidate does can depend on the inputs.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any

import torch

from rlkernel.errors import BrokenReference, one_line
from rlkernel.evaluator import wire
from rlkernel.evaluator.devices import DeviceProfile, profile_of
from rlkernel.evaluator.judging.arguments import arguments
from rlkernel.evaluator.judging.drawing import Before, Round, draw_rounds
from rlkernel.evaluator.judging.kernelbench import closeness, worse
from rlkernel.evaluator.judging.least_work import LEAST, least_share, may_hide
from rlkernel.evaluator.judging.least_written import LeastWritten
from rlkernel.evaluator.judging.operator_costs import NoCost, dense_bytes, flops, least_flops, moved_bytes, read_bytes, taken
from rlkernel.evaluator.judging.reference_calls import tensors_of
from rlkernel.evaluator.judging.roofline import floor_us, is_free, operator_us, physical_floor_us
from rlkernel.evaluator.judging.rounds import Expected, compare_round
from rlkernel.evaluator.judging.sizes import fit, lengthen
from rlkernel.evaluator.messages import codec
from rlkernel.evaluator.messages.children import RoundInputs
from rlkernel.evaluator.messages.endings import Broken
from rlkernel.evaluator.messages.oracle import (
    About,
    Brief,
    Compare,
    Compared,
    DrawRounds,
    Fit,
    Lengthen,
    Malformed,
    Prepare,
    Rounds,
)
from rlkernel.evaluator.program import encoding
from rlkernel.evaluator.program.operators import writes
from rlkernel.evaluator.program.replaced import attributes, drawn, hold, holding, newly_replaced
from rlkernel.evaluator.program.replay import Replay
from rlkernel.evaluator.program.schema import Op, Program
from rlkernel.evaluator.program.tensors import meta_tensors
from rlkernel.evaluator.program.variant import Variant
from rlkernel.evaluator.trace.calls import form_of
from rlkernel.evaluator.trace.candidate import decode_spec, encode_output
from rlkernel.evaluator.trace.devices import CUDA
from rlkernel.evaluator.trace.lie import recording
from rlkernel.evaluator.trace.pretrained import made_of_configs
from rlkernel.evaluator.trace.recorder import Recorder, Untraceable
from rlkernel.evaluator.trace.shims import answering_as
from rlkernel.reference import Reference, load_reference
from rlkernel.reference_text import apply_small, small_constants
from rlkernel.types import Closeness, OpFact, Precision

MOST_LOOKED_AT = 1 << 24
"""Elements of inputs and weights up to which their values are looked at; with more, a part of them may hide another."""


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


@dataclass(frozen=True, slots=True)
class Prepared:
    """A problem, ready: its references at both sizes, and what the tracer and the roofline need."""

    small: Reference
    variants: tuple[Variant, Variant]
    """The arguments at small and at full shape."""
    modal: bool
    """Whether forward differs between train and eval mode."""
    costs: Costs
    program: Program
    """The reference itself, traced at full shape."""


class _Traced:
    """A reference traced at its own shapes."""

    def __init__(self, reference: Reference, profile: DeviceProfile, held: tuple[str, ...] = ()) -> None:
        self.held = held
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
        with answering_as(profile), recording(self.recorder):
            self._trace(reference.namespace["Model"])
        reference.check_fixed(self.program.state)

    def _trace(self, model_class: Any) -> None:
        init_ids: list[int] = []
        args, kwargs = decode_spec(self.variant.init_args, self.recorder, init_ids)
        self.recorder.reading.inputs.clear()
        with made_of_configs(self.variant.init_args):
            model = model_class(*args, **kwargs)
        hold(model, self.held)
        before = attributes(model)
        named = [*model.named_parameters(), *model.named_buffers()]
        state = {name: self.recorder.id_of(tensor) for name, tensor in named}
        self.given = sum(spec.numel() for spec in meta_tensors(self.variant.specs.inputs)) + sum(t.numel() for _, t in named)
        self.recorder.reading.state |= {self.recorder.storage(number) for number in state.values()}
        for _, tensor in named:  # the module is moved to the GPU before it is called
            self.recorder.devices.move(tensor, CUDA)
        init = self.recorder.phase()
        forms = []
        for flip in (False, True):
            if flip:
                model.train(not model.training)
            ids: list[int] = []
            began = (len(self.recorder), len(self.recorder.numbers))
            inputs = decode_spec(self.variant.inputs, self.recorder, ids)
            self.recorder.reading.drawn = dict(zip(map(self.recorder.storage, ids), self._examples, strict=True))
            self.recorder.phase()
            self.recorder.reading.begin()
            with holding(model):
                returned = model(*inputs)
            output = encode_output(returned, self.recorder)
            reads, steps = self.recorder.reading.finish(), self.recorder.phase()
            form = form_of(ids, [*reads, *steps], output, began)
            forms.append((form.rows, form.outer))
            if not flip:
                self.replaced = newly_replaced(before, model)
                self.keeps = not before.keys() <= state.keys()  # tensors as plain attributes
                self.program = Program((), tuple(init_ids), tuple(init), state, tuple(ids), tuple(steps), output, tuple(reads))
        self.modal = forms[0] != forms[1]

    def costs(self, precision: Precision) -> Costs:
        rows: dict[str, list[float]] = {}
        inputs = meta_tensors(self.variant.specs.inputs)
        storages = {t.untyped_storage()._cdata: 0.0 for t in inputs}
        dependent = set(storages)
        """The storages whose contents depend on the inputs."""

        products: dict[torch.dtype, float] = {}
        needed, unpriced = list[float](), list[str]()

        def observe(index: int, step: Any, read: Any, made: Any) -> None:
            if not isinstance(step, Op):
                return
            least.see(step, read, made)
            if any(t.untyped_storage()._cdata in dependent for t in read):
                dependent.update(t.untyped_storage()._cdata for t in [*made, *(read if writes(step) else ())])
            if work := flops(step, read, made):
                products[made[0].dtype] = products.get(made[0].dtype, 0.0) + work
                needed.append(least_flops(step, read, made))
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
                        storages[key] = max(storages[key], most)

        replay = Replay(self.program, torch.device("meta"), lambda *a: None)
        replay.init(meta_tensors(self.variant.specs.init_inputs), 0)
        replay.prepare((), 0)
        least = LeastWritten([*inputs, *replay.state().values()])
        outputs = tensors_of(replay.forward(inputs, 0, observe=observe))
        total = sum(sum(us) for us in rows.values())
        ops = [OpFact(op, len(us), sum(us), sum(us) / total) for op, us in rows.items()]
        ops.sort(key=lambda fact: -fact.us)
        moved = min(_distinct_bytes(outputs), sum(least.of(outputs)))
        floor = floor_us(sum(storages.values()), moved, products, self.profile, precision)
        made = {o.untyped_storage()._cdata: dense_bytes(o) for o in outputs}
        written = sum(size for key, size in made.items() if key in dependent and key not in storages)
        physical = physical_floor_us(written, self.profile)
        share, unknown = least_share(self.program), tuple(unpriced)
        return Costs(total, tuple(ops), floor, physical, sum(needed), share, unknown, least.of(outputs))


def _distinct_bytes(tensors: list[torch.Tensor]) -> int:
    """The bytes of the memory that tensors lie in, where several may lie in the same."""
    found: dict[int, tuple[int, int]] = {}
    for tensor in tensors:
        storage = tensor.untyped_storage()
        found[storage._cdata] = storage.nbytes(), found.get(storage._cdata, (0, 0))[1] + dense_bytes(tensor)
    return sum(min(whole, parts) for whole, parts in found.values())


def prepare(source: str, name: str, profile: DeviceProfile, precision: Precision) -> Prepared:
    """Raises BrokenReference: one line that names the problem."""
    small, full = load_reference(source, small=True, name=name), load_reference(source, small=False, name=name)
    try:
        traced_small = _Traced(small, profile)
        replaced = traced_small.replaced
        if traced_small.keeps:
            replaced = tuple(dict.fromkeys((*replaced, *drawn(small.model(0), small.model(1)))))
        if replaced:
            traced_small = _Traced(small, profile, replaced)
        one_size = apply_small(source, name=name) == source
        traced_full = traced_small if one_size else _Traced(full, profile, replaced)
        costs = traced_full.costs(precision)
        if costs.least_share > LEAST and (traced_small.given > MOST_LOOKED_AT or may_hide(_given(small, 0), _given(small, 1))):
            costs = replace(costs, least_share=LEAST)
    except Untraceable as error:
        raise BrokenReference(f"{name}: the reference cannot be traced: {error}") from error
    except BrokenReference:
        raise
    except Exception as error:  # any failure of the reference's own code becomes one line about it
        raise BrokenReference(f"{name}: tracing forward raised {one_line(error)}") from error
    if costs.us <= 0:
        raise BrokenReference(f"{name}: forward does no device work, so there is nothing to speed up")
    shrunk = replace(traced_small.variant, constants=small_constants(source, name=name), replaced=replaced)
    variants = (shrunk, replace(traced_full.variant, replaced=replaced))
    return Prepared(small, variants, traced_small.modal, costs, traced_full.program)


def _given(reference: Reference, seed: int) -> list[torch.Tensor]:
    """The tensors that a forward is given: inputs, parameters and buffers, as the reference's author draws them."""
    model = reference.model(seed)
    return [*tensors_of(reference.inputs(seed)), *model.parameters(), *model.buffers()]


def _round_inputs(problem: Prepared, one: Round, reply: wire.Body) -> RoundInputs:
    """A round as the CPU runner gets it: what to construct the module with, its inputs, and whose state to send back."""
    args, kwargs = problem.small.init_inputs(one.init_seed)  # those of the reference's model
    return RoundInputs(
        one.init_seed,
        one.forward_seed,
        one.expected.other,
        one.again,
        watched=tuple(one.expected.state),
        init_inputs=tuple(reply.add(t) for t in tensors_of([args, kwargs])),
        state={} if one.again else {name: reply.add(t) for name, t in one.state.items()},
        inputs=tuple(reply.add(t) for t in tensors_of(one.inputs)),
        first_inputs=() if one.again else tuple(reply.add(t) for t in tensors_of(one.first_inputs)),
    )


class Oracle:
    """Serves one lane of the pool: fit, lengthen, prepare, rounds, compare."""

    def __init__(self) -> None:
        self._problems: OrderedDict[str, Prepared | str] = OrderedDict()
        self._expected: list[Expected] = []

    def handle(self, header: dict[str, Any], body: bytes) -> bytes:
        """The packed answer to a question of the pool."""
        question: Fit | Lengthen | Prepare | DrawRounds | Compare
        question = codec.unpack(header, Fit, Lengthen, Prepare, DrawRounds, Compare)
        if isinstance(question, Fit):
            return codec.pack(fit(question))
        if isinstance(question, Lengthen):
            return codec.pack(lengthen(question))
        if isinstance(question, Prepare):
            return codec.pack(self._brief(question))
        if isinstance(question, Compare):
            return codec.pack(self._compare(question, body))
        reply = wire.Body()
        return codec.pack(self._rounds(question, reply), reply)

    def _problem(self, about: About) -> Prepared | str:
        """The problem, or why it cannot be used."""
        key = f"{about.profile} {about.precision} {about.name} {about.source}"
        if key not in self._problems:
            try:
                self._problems[key] = prepare(about.source, about.name, profile_of(about.profile), about.precision)
            except BrokenReference as error:
                self._problems[key] = str(error)
            if len(self._problems) > 256:
                self._problems.popitem(last=False)
        return self._problems[key]

    def _brief(self, question: Prepare) -> Brief | Broken:
        problem = self._problem(question.about)
        if isinstance(problem, str):
            return Broken(problem)
        costs, reference = problem.costs, encoding.to_json(problem.program)
        floors = (costs.floor_us, costs.measured_floor_us, costs.products, costs.least_share)
        return Brief(problem.variants, problem.modal, costs.us, *floors, reference, costs.ops, costs.unpriced, costs.written)

    def _rounds(self, question: DrawRounds, reply: wire.Body) -> Rounds | Broken:
        problem = self._problem(question.about)
        assert isinstance(problem, Prepared)
        try:
            before = Before(question.calls_before, question.other_calls_before)
            other, replaced, about = problem.modal or question.other, problem.variants[0].replaced, question.about
            drawn = draw_rounds(problem.small, about.precision, question.key, other=other, before=before, replaced=replaced)
        except BrokenReference as error:
            return Broken(str(error))
        except Exception as error:  # whatever the reference's own code raises is told in one line
            return Broken(f"{question.about.name}: forward raised {one_line(error)}")
        self._expected = [one.expected for one in drawn]
        return Rounds(tuple(_round_inputs(problem, one, reply) for one in drawn))

    def _compare(self, question: Compare, body: bytes) -> Compared | Malformed:
        """The first miss, or a match. The outputs are what an untrusted child made of them."""
        worst = 0.0
        if len(question.rounds) != len(self._expected):
            return Malformed("another number of rounds")
        try:
            close = self._closeness(question, body)
        except wire.BadMessage as error:
            return Malformed(str(error)[:200])
        for row, expected in zip(question.rounds, self._expected, strict=True):
            try:
                tensors = [wire.tensor(span, body) for span in row.tensors]
                inputs = [wire.tensor(span, body) for span in row.inputs]
                state = {name: wire.tensor(span, body) for name, span in row.state.items()}
                match = compare_round(row.structure, tensors, row.overlapping, row.lent, inputs, state, expected)
            except (wire.BadMessage, KeyError, TypeError, IndexError, ValueError, RuntimeError) as error:  # its tensors' fault
                return Malformed(str(error)[:200])
            worst = max(worst, match.error)
            if not match.matches:
                return Compared(False, match.detail, worst, expected.other, close)
        return Compared(True, "", worst, False, close)

    def _closeness(self, question: Compare, body: bytes) -> Closeness | None:
        """How KernelBench would compare the rounds at the problem's own inputs. Raises wire.BadMessage."""
        found: Closeness | None = None
        for row, expected in zip(question.rounds, self._expected, strict=True):
            if expected.ordinary:
                now = closeness([wire.tensor(span, body) for span in row.tensors], expected.reference)
                found = now if found is None else worse(found, now)
        return found
