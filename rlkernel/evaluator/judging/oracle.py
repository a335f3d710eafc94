"""The trusted side of an evaluation: what a problem's reference wants, costs and gives.

A long-lived child; it runs references and compares outputs, never a candidate's code. Seeds come from a key that is made when
the candidate was traced (`rlkernel.evaluator.draws`), so nothing that a candidate does can depend on the inputs.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rlkernel.errors import BrokenReference
from rlkernel.evaluator import wire
from rlkernel.evaluator.devices import profile_of
from rlkernel.evaluator.judging.construction import Round
from rlkernel.evaluator.judging.drawing import draw_rounds
from rlkernel.evaluator.judging.errors.kernelbench import closeness, worse
from rlkernel.evaluator.judging.preparing import Prepared, prepare
from rlkernel.evaluator.judging.references.plan import Before
from rlkernel.evaluator.judging.references.reference_calls import tensors_of
from rlkernel.evaluator.judging.rounds import Expected, compare_round
from rlkernel.evaluator.judging.sizes.answers import fit, lengthen, vary
from rlkernel.evaluator.messages import codec
from rlkernel.evaluator.messages.children import RoundInputs
from rlkernel.evaluator.messages.endings import Broken
from rlkernel.evaluator.messages.oracle import (
    About,
    Brief,
    Compare,
    Compared,
    DrawMore,
    DrawRounds,
    Fit,
    Lengthen,
    Malformed,
    Prepare,
    Rounds,
    Vary,
)
from rlkernel.evaluator.program import encoding
from rlkernel.reference import describe
from rlkernel.types import Closeness

Question = Fit | Lengthen | Vary | Prepare | DrawRounds | DrawMore | Compare
ENOUGH = 1 << 28
"""Bytes of a message with rounds from which on no others are put beside them. Weights that the interpreter finds comfortable
(`size_search.INTERPRETED_WEIGHTS`) stay below."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """The rounds of one candidate, as far as they are not drawn yet."""

    problem: Prepared
    name: str
    modules: Iterator[tuple[Round, ...]]
    """What `draw_rounds` has left."""


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
    """Serves one lane of the pool: fits, lengthens and prepares problems, draws rounds and compares outputs."""

    def __init__(self) -> None:
        self._problems: OrderedDict[str, Prepared | str] = OrderedDict()
        self._name = ""
        """The name of the problem that is asked about."""
        self._drawing: Drawing | None = None
        self._expected: list[Expected] = []
        """What is expected of the rounds that were drawn last."""

    def handle(self, header: dict[str, Any], body: bytes) -> bytes:
        """The packed answer to a question of the pool."""
        question: Question = codec.unpack(header, Fit, Lengthen, Vary, Prepare, DrawRounds, DrawMore, Compare)
        if not isinstance(question, DrawMore | Compare):
            self._name = question.about.name
        try:
            return self._answer(question, body)
        except (SystemExit, KeyboardInterrupt) as error:  # nobody interrupts this process: its text has raised it
            return codec.pack(Broken(f"{self._name}: it raised {describe(error, self._name)}"))

    def _answer(self, question: Question, body: bytes) -> bytes:
        if isinstance(question, Fit):
            return codec.pack(fit(question))
        if isinstance(question, Lengthen):
            return codec.pack(lengthen(question))
        if isinstance(question, Vary):
            return codec.pack(vary(question))
        if isinstance(question, Prepare):
            return codec.pack(self._brief(question))
        if isinstance(question, Compare):
            return codec.pack(self._compare(question, body))
        reply, enough = wire.Body(), ENOUGH
        if isinstance(question, DrawRounds):
            self._begin(question)
            enough = 0 if question.doubted else ENOUGH
        return codec.pack(self._rounds(reply, enough), reply)

    def _problem(self, about: About, *, modelled: bool = True) -> Prepared | str:
        """The problem, or why it cannot be used."""
        key = f"{modelled} {about.profile} {about.precision} {about.name} {about.source}"
        if key not in self._problems:
            try:
                profile = profile_of(about.profile)
                self._problems[key] = prepare(about.source, about.name, profile, about.precision, modelled=modelled)
            except BrokenReference as error:
                self._problems[key] = str(error)
            if len(self._problems) > 256:
                self._problems.popitem(last=False)
        return self._problems[key]

    def _brief(self, question: Prepare) -> Brief | Broken:
        problem = self._problem(question.about, modelled=question.modelled)
        if isinstance(problem, str):
            return Broken(problem)
        costs, reference = problem.costs, encoding.to_json(problem.program)
        floors = (costs.floor_us, costs.measured_floor_us, costs.products, costs.least_share)
        return Brief(
            problem.variants, problem.modal, costs.us, *floors, reference, costs.ops, costs.unpriced, costs.written,
            costs.reads, tuple(problem.counterparts.items()), problem.counts, problem.distances,
            problem.widths, problem.known, problem.told,
        )  # fmt: skip

    def _begin(self, question: DrawRounds) -> None:
        """Take up a candidate, of which no round is drawn yet."""
        problem, about = self._problem(question.about), question.about
        assert isinstance(problem, Prepared)
        before = Before(question.calls_before, question.other_calls_before)
        other, replaced = problem.modal or question.other, problem.variants[0].replaced
        modules = draw_rounds(
            problem.small, about.precision, question.key, other=other, before=before, replaced=replaced, plants=problem.plants
        )
        self._drawing = Drawing(problem, about.name, modules)

    def _rounds(self, reply: wire.Body, enough: int) -> Rounds | Broken:
        """The next rounds: of as many modules as it takes until the message has `enough` bytes."""
        drawing, self._expected = self._drawing, []
        assert drawing is not None, "no candidate was taken up"
        found: list[RoundInputs] = []
        while not found or reply.size < enough:
            try:
                rounds = next(drawing.modules, ())
            except BrokenReference as error:
                return Broken(str(error))
            except Exception as error:  # whatever the reference's own code raises is told in one line
                return Broken(f"{drawing.name}: forward raised {describe(error, drawing.name)}")
            if not rounds:
                self._drawing = None
                break
            self._expected += [one.expected for one in rounds]
            found += [_round_inputs(drawing.problem, one, reply) for one in rounds]
            del rounds  # its weights are in the message
        return Rounds(tuple(found), self._drawing is not None)

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
                return Compared(False, match.detail, worst, expected.other, close, match.place)
        return Compared(True, "", worst, False, close)

    def _closeness(self, question: Compare, body: bytes) -> Closeness | None:
        """How KernelBench would compare the rounds at the problem's own inputs. Raises wire.BadMessage."""
        found: Closeness | None = None
        for row, expected in zip(question.rounds, self._expected, strict=True):
            if expected.ordinary:
                now = closeness([wire.tensor(span, body) for span in row.tensors], expected.reference)
                found = now if found is None else worse(found, now)
        return found
