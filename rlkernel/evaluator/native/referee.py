"""A trusted process that judges one candidate as plain Python. It holds the candidate's process, and believes nothing of it.

    fork two processes, which wait             no candidate's code is there yet
    time the reference in the first            by the same questions as the candidate later; then it is killed
    rounds     seeds -> outputs                inputs cannot be known before their seed is
    calls      seed -> time and sums -> outputs        one at a time, by the referee's own clock, too
    kill the second process
    draw inputs and weights again, compute the answers, compare        no candidate's code is there any more

A candidate can forge the time that it claims. It cannot gain much: inputs are drawn from a seed that it is told when the clock
has started, and the clock stops when it has named the sums of its outputs, which the outputs that follow must have. What stands
around the reference's calls, by the same clock, is known. So the call took the rest, but for `ALLOWANCE_US`.
"""

from __future__ import annotations

import socket
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from rlkernel.errors import BrokenReference, one_line
from rlkernel.evaluator import wire
from rlkernel.evaluator.judging.errors.comparison import bits
from rlkernel.evaluator.judging.inputs.places import places
from rlkernel.evaluator.judging.inputs.stress import stresses
from rlkernel.evaluator.judging.references.flags import judging, set_precision
from rlkernel.evaluator.judging.references.reference_calls import call, draw_seed, state_of, tensors_of
from rlkernel.evaluator.messages import codec
from rlkernel.evaluator.messages.children import RoundOutputs
from rlkernel.evaluator.messages.endings import Broken
from rlkernel.evaluator.messages.judgement import Stress
from rlkernel.evaluator.messages.native import (
    Begin,
    Call,
    Construct,
    Done,
    Draw,
    HandOver,
    NativeEnd,
    NativeFound,
    NativeRequest,
    TimeCall,
    Timed,
    Way,
)
from rlkernel.evaluator.native.calls import PlacedReference
from rlkernel.evaluator.native.comparing import Given, compare_rounds, compare_timed
from rlkernel.evaluator.native.held import Held, HeldEnded, PoolGone, hold
from rlkernel.evaluator.native.quiet import Quiet
from rlkernel.evaluator.program.codes import valued

ALLOWANCE_US = 100.0
"""What the referee's clock may count in vain of one call, because a host is not always equally fast."""
KERNELBENCH_ROUNDS = 5
WARM_UPS = 2
MOST_CALLS, LEAST_CALLS = 20, 5
KEPT_BYTES = 2 << 30
"""Outputs of rounds, and of timed calls, that are kept until the candidate's process is gone, unless the least number of calls
needs more."""


def serve(sock: socket.socket, enclose: Callable[[NativeRequest], None]) -> None:
    """Answer one `NativeRequest`. `enclose` fences in the process that will run the candidate."""
    message = wire.receive(sock)
    if message is None:
        return
    request = codec.unpack(message[0], NativeRequest)
    answer: NativeFound | Broken
    try:
        answer = _Referee(request).judge(sock, lambda: enclose(request))
    except PoolGone:
        return
    except BrokenReference as error:
        answer = Broken(str(error))
    wire.send(sock, codec.pack(answer))


@dataclass(frozen=True, slots=True)
class _Times:
    """The timed calls of one process, microseconds."""

    claimed_us: float
    """Median device time that the process claims."""
    around_us: float
    """Median of what the referee's clock shows beyond that."""
    shortest_us: float
    """The shortest call by the referee's clock."""


class _Referee:
    """One judgement."""

    def __init__(self, request: NativeRequest) -> None:
        self._request = request
        self._quiet = Quiet(request.alone)

    def judge(self, pool: socket.socket, enclose: Callable[[], None]) -> NativeFound:
        """Judge the candidate. Raises BrokenReference, or PoolGone."""
        with self._quiet.shared():
            return self._judge(pool, enclose)

    def _judge(self, pool: socket.socket, enclose: Callable[[], None]) -> NativeFound:
        request = self._request
        with self._hold(enclose, pool) as held:
            with self._hold(enclose, pool) as measured:
                self._problem = PlacedReference.load(request.source, request.name, request.device, small=request.small)
                reference = self._time_reference(measured) if request.timed else None
            with _own(request.name):
                set_precision(request.precision)
                rounds, watched = self._rounds()
            self._give_memory_back()
            constructed = False
            try:
                self._begin(held, request.code, rounds[0])
                constructed = True
                given = self._given(held, rounds, watched)
                found, warm_ups, timed = self._timed(held, reference)
            except HeldEnded as end:
                return NativeFound(end.ended, end.detail, constructed=constructed)
        return self._compared(found, given, warm_ups, timed)

    def _timed(self, held: Held, reference: tuple[_Times, int] | None) -> tuple[NativeFound, list[Draw], list[Given]]:
        """The candidate's times beside the reference's, the draws that came before, and what the timed calls returned; nothing is
        timed where the reference was not. Raises HeldEnded."""
        if reference is None:
            return NativeFound(NativeEnd.RAN, constructed=True), [], []
        usual, count = reference
        with self._quiet.alone():
            warm_ups = self._warmed_up(held)
            times, timed = self._time(held, warm_ups[0], count, keep=True)
        proved_us = times.shortest_us - usual.around_us - ALLOWANCE_US
        found = NativeFound(
            NativeEnd.RAN, constructed=True, reference_us=usual.claimed_us,
            candidate_us=max(times.claimed_us, proved_us, 1e-3), claimed_us=times.claimed_us, proved_us=proved_us,
            calls=len(timed),
        )  # fmt: skip
        return found, warm_ups, timed

    def _hold(self, enclose: Callable[[], None], pool: socket.socket) -> AbstractContextManager[Held]:
        return hold(enclose, pool, Path(self._request.scratch), self._request.seconds)

    def _compared(
        self, found: NativeFound, given: Sequence[Given], warm_ups: Sequence[Draw], timed: Sequence[Given]
    ) -> NativeFound:
        """What was found, and how the outputs compare. Raises BrokenReference."""
        with _own(self._request.name):
            try:
                with judging(self._request.precision):
                    compared = compare_rounds(
                        self._problem, given, self._request.precision, state=self._request.way is Way.JUDGED
                    )
                    if timed:
                        compared = compare_timed(self._problem, warm_ups, timed, compared)
            except wire.BadMessage as error:
                return NativeFound(NativeEnd.DIED, f"its process sent {error}", constructed=True)
        return replace(
            found, detail=compared.detail, matches=compared.matches, close=compared.close, error=compared.error,
            inputs_changed=compared.inputs_changed,
        )  # fmt: skip

    def _begin(self, held: Held, code: str, first: Draw) -> None:
        request = self._request
        copied = request.way is Way.JUDGED
        begin = Begin(
            request.name, request.source, code, request.device, request.small, request.precision, copied, request.scratch
        )  # fmt: skip
        held.ask(begin, Done)
        held.ask(Construct(first), Done)

    def _called(self, held: Held, draw: Draw, watched: tuple[str, ...]) -> Given:
        answer = held.ask(Call(draw, watched), RoundOutputs)
        return Given(draw, answer.message, answer.body)

    def _given(self, held: Held, rounds: Sequence[Draw], watched: tuple[str, ...]) -> list[Given]:
        """What the candidate returns in each round; fewer of KernelBench's five where outputs are large. Raises HeldEnded."""
        given, size = [], 0
        for draw in rounds:
            given.append(self._called(held, draw, watched))
            size += len(given[-1].body)
            if self._request.way is Way.KERNELBENCH and size * (1 + 1 / len(given)) > KEPT_BYTES:
                break
        return given

    def _time_reference(self, held: Held) -> tuple[_Times, int]:
        """Time the reference as if it were a candidate. Also says how many calls are timed. Raises BrokenReference."""
        try:
            with self._quiet.alone():
                self._begin(held, f"{self._problem.text}\nModelNew = Model\n", _fresh())
                warm_ups = self._warmed_up(held)
                outputs = held.ask(HandOver(), RoundOutputs)
                count = max(LEAST_CALLS, min(MOST_CALLS, KEPT_BYTES // max(1, len(outputs.body))))
                return self._time(held, warm_ups[0], count, keep=False)[0], count
        except HeldEnded as end:
            raise BrokenReference(f"{self._request.name}: as plain Python on {self._request.device}: {end.detail}") from None

    def _warmed_up(self, held: Held) -> list[Draw]:
        """The draws of the calls that come before timed ones, all of one new module. Raises HeldEnded."""
        first = _fresh()
        draws = [first, *(self._next(first) for _ in range(WARM_UPS - 1))]
        held.ask(Construct(first), Done)
        for draw in draws:
            held.ask(TimeCall(draw), Timed)
        return draws

    @staticmethod
    def _next(draw: Draw) -> Draw:
        """The same module called again, on other inputs."""
        return replace(draw, input_seed=draw_seed(), forward_seed=draw_seed(), again=True)

    def _time(self, held: Held, first: Draw, count: int, *, keep: bool) -> tuple[_Times, list[Given]]:
        """Time calls, and with `keep` collect what they return. It is handed over without that, too, so that the same stands
        around the calls of both sides. Raises HeldEnded."""
        timed, claimed, walls = [], [], []
        for _ in range(count):
            draw = self._next(first)
            answer = held.ask(TimeCall(draw), Timed)
            claimed.append(answer.message.us)
            walls.append(answer.seconds * 1e6)
            outputs = held.ask(HandOver(), RoundOutputs)
            if keep:
                timed.append(Given(draw, outputs.message, outputs.body, answer.message.sums))
        around = statistics.median(wall - us for wall, us in zip(walls, claimed, strict=True))
        return _Times(statistics.median(claimed), around, min(walls)), timed

    def _rounds(self) -> tuple[list[Draw], tuple[str, ...]]:
        """The draws that are compared, and the state that is asked for. Raises what the reference raises."""
        first = _fresh()
        if self._request.way is Way.KERNELBENCH:
            more = KERNELBENCH_ROUNDS - 1
            return [first, *(self._next(first) for _ in range(more))], ()
        model, inputs = self._problem.drawn_model(first), self._problem.drawn_inputs(first)
        before = {name: tensor.clone() for name, tensor in state_of(model).items()}
        hard = stresses(inputs)
        usual = _finite(call(model, inputs, first.forward_seed))
        changed = {name for name, tensor in state_of(model).items() if not torch.equal(bits(tensor), bits(before[name]))}
        watched = tuple(sorted({*changed, *(name for name, buffer in model.named_buffers() if buffer.is_floating_point())}))
        drawn = (self._hard(stress) for stress in (*hard, Stress.NONE))
        hardest = next((draw for draw in drawn if self._as_finite(draw, usual)), _fresh())
        other = replace(_fresh(), perturbed=True, other=True)
        return [first, self._next(first), hardest, other], watched

    def _hard(self, stress: Stress) -> Draw:
        """A draw at other constants, and at inputs under stress."""
        draw = replace(_fresh(), stress=stress, perturbed=True)
        build, seeds = partial(self._problem.drawn_model, draw), (draw.input_seed, draw.init_seed, draw.forward_seed)
        return replace(draw, places=places(build, self._problem.inputs, seeds, stress))

    def _as_finite(self, draw: Draw, usual: bool) -> bool:
        """Whether the reference takes such a draw, and stays as finite as it usually is."""
        try:
            output = call(self._problem.drawn_model(draw), self._problem.drawn_inputs(draw), draw.forward_seed)
        except Exception:  # a reference may refuse such inputs in its own way
            return False
        return _finite(output) or not usual

    def _give_memory_back(self) -> None:
        if self._problem.device.type == "cuda":
            torch.cuda.empty_cache()


def _fresh() -> Draw:
    return Draw(draw_seed(), draw_seed(), draw_seed())


def _finite(output: Any) -> bool:
    return all(bool(torch.isfinite(valued(tensor)).all()) for tensor in tensors_of(output) if tensor.is_floating_point())


@contextmanager
def _own(name: str) -> Iterator[None]:
    """What the reference's own code raises becomes one line about it. Raises BrokenReference."""
    try:
        yield
    except (BrokenReference, wire.BadMessage):
        raise
    except Exception as error:  # the reference's own code may raise anything
        raise BrokenReference(f"{name}: run as plain Python it raised {one_line(error)}") from error
