"""The CPU runner's one job: replay a Program on the inputs of every round, and count what it would cost at full shape.

Runs in a locked child that dies afterwards. It never sees expected outputs.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from rlkernel.evaluator import wire
from rlkernel.evaluator.cpu.beyond import shows
from rlkernel.evaluator.cpu.efforts import Efforts
from rlkernel.evaluator.cpu.extents import Extents
from rlkernel.evaluator.cpu.interpreter import Idle, Interpreter, KernelFailed
from rlkernel.evaluator.cpu.language import the_machine
from rlkernel.evaluator.cpu.limits import Limits
from rlkernel.evaluator.cpu.memory import OutOfBounds
from rlkernel.evaluator.cpu.module import Module, Round, configs_alike, step_number
from rlkernel.evaluator.cpu.pace import Pace, TooMuchWork
from rlkernel.evaluator.cpu.priced import FAILURES, priced_at_full
from rlkernel.evaluator.cpu.pricing import Pricing
from rlkernel.evaluator.cpu.tried import Tried
from rlkernel.evaluator.devices import profile_of
from rlkernel.evaluator.judging.costs.operator_costs import NoCost
from rlkernel.evaluator.judging.references.flags import set_precision
from rlkernel.evaluator.messages import codec
from rlkernel.evaluator.messages.children import (
    Priced,
    PriceRequest,
    Prices,
    Ran,
    RoundOutputs,
    RunRequest,
    TooLarge,
)
from rlkernel.evaluator.messages.endings import Failed
from rlkernel.evaluator.program.first_call import Touched
from rlkernel.evaluator.program.kernel_text import KernelRejected
from rlkernel.evaluator.program.replay import StepFailed
from rlkernel.evaluator.program.schema import MalformedProgram, Program
from rlkernel.evaluator.program.tensors import flatten, lent, overlapping
from rlkernel.types import Precision, Status

PATIENCE = 10.0
LEAST_PATIENCE = 3_000.0
"""The work, see `pace`, that a call without one kernel may take: so many times that of the whole call, and so much besides."""


def _bytes(value: Any) -> list[bytes]:
    found: list[torch.Tensor] = []
    flatten(value, found)
    found = [t.detach().resolve_conj().resolve_neg() for t in found]
    return [t.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() if t.numel() else b"" for t in found]


def _live(
    small: Program, interpreter: Interpreter, configs: dict[int, int], one: Round, left: Any, work: float
) -> dict[int, bool]:  # fmt: skip
    """Function -> whether skipping its launches changes what a call has `left`: its output, its arguments, and the state that the
    reference changes, too. `work`: of that call."""
    honest = _bytes(left)
    found = {}
    for function in sorted({launch.function for launch in small.launches}):
        interpreter.machine.pace = Pace(PATIENCE * work + LEAST_PATIENCE)
        try:
            module = Module(small, interpreter, configs, one)
            skipped = module.call(one, frozenset({function}))
            found[function] = _bytes([*skipped, module.watched(one)]) != honest
        except (
            KernelFailed,
            OutOfBounds,
            StepFailed,
            TooMuchWork,
        ):  # the rest addresses memory by what it stores, or waits for it
            found[function] = True
        finally:
            interpreter.machine.pace = None
    return found


ROUNDS = 5
"""How many rounds there may be of which not all come in the first message."""


def _failed(error: Exception) -> Failed:
    """What becomes of a candidate by one of `FAILURES`."""
    if isinstance(error, OutOfBounds):
        return Failed(Status.OUT_OF_BOUNDS, str(error))
    if isinstance(error, KernelRejected):
        return Failed(Status.COMPILE_ERROR, f"line {error.line}: {error}" if error.line else str(error))
    return Failed(Status.UNTRACEABLE if isinstance(error, NoCost) else Status.RUNTIME_ERROR, str(error))


def _share(request: RunRequest) -> float:
    """What one forward may take of all the work: there is one in each round, and one without each kernel."""
    assert request.most_work is not None
    return request.most_work / _forwards(request)


def _forwards(request: RunRequest) -> int:
    """How many forwards there are in all rounds."""
    return max(len(request.rounds), ROUNDS) + len({launch.function for launch in request.program.launches})


def _touched(request: RunRequest) -> dict[str, Touched]:
    """Text of a kernel -> what its binary may store to and load from."""
    steps = {step_number(step): touched for step, touched in request.touched.items()}
    launches = {number: launch for number, launch in request.full.numbered_launches if number in steps}
    found: dict[str, Touched] = {}
    for number, launch in launches.items():
        text = request.full.functions[launch.function].source
        found[text] = steps[number].also(found.get(text, Touched()))
    return found


def _refuse_idle(full: Program, priced: Priced, live: Container[str]) -> None:
    """Raises Idle for a kernel whose text is among the `live` ones, if no program of a launch was found that writes."""
    for number, line in priced.idle.items():
        function = full.functions[number]
        if function.source in live:
            raise Idle(f"line {line}: kernel {function.name}: ")


def _outputs(reply: wire.Body, output: Any, inputs: Sequence[torch.Tensor], state: Mapping[str, torch.Tensor]) -> RoundOutputs:
    """What a call has returned and changed, with its tensors put into the reply."""
    tensors: list[torch.Tensor] = []
    structure = flatten(output, tensors)
    return RoundOutputs(
        structure,
        tensors=tuple(reply.add(t) for t in tensors),
        overlapping=tuple(overlapping(t) for t in tensors),
        lent=tuple(lent(t, inputs) for t in tensors),
        inputs=tuple(reply.add(t) for t in inputs),
        state={name: reply.add(tensor) for name, tensor in state.items()},
    )


def _growth(request: RunRequest, inputs: Sequence[torch.Tensor]) -> float:
    """How many times as many elements the inputs have at full shape."""
    full = sum(math.prod(spec.shape) for spec in request.full_specs.inputs)
    return full / max(1, sum(tensor.numel() for tensor in inputs))


def _run(request: RunRequest, body: bytes) -> bytes:
    small, other, full = request.program, request.other or request.program, request.full
    compiled = {step_number(step): config for step, config in request.configs.items()}
    machine, _ = the_machine()
    machine.draw_from(request.key)
    machine.limits, machine.efforts = Limits.left_by(request.priced.held if request.priced else (), full), Efforts()
    set_precision(request.precision)
    try:
        priced = request.priced or priced_at_full(request, compiled, body)
    except FAILURES as error:
        return codec.pack(replace(_failed(error), at_full=True))
    machine.extents, machine.efforts = Extents(), Efforts()
    configs = configs_alike(compiled, full, small)
    interpreter = Interpreter(small)
    reply = wire.Body()
    rounds: list[RoundOutputs] = []
    live: dict[int, bool] = {}
    module: Module | None = None
    work, limited, effort, tunes = 0, False, 1.0, False
    tried = Tried(small, _touched(request), machine.leaves)
    for index, entry in enumerate(request.rounds, request.before):
        one = Round(entry, body)
        interpreter.machine.begin_round(index)
        pace = Pace(_share(request) if request.most_work is not None else math.inf)
        interpreter.machine.pace = pace if index == 0 else None
        if module is None or not one.again:
            if one.other and other is not small:
                module = Module(other, Interpreter(other), configs_alike(compiled, full, other), one)
            else:
                module = Module(small, interpreter, configs, one, tried)
        output, inputs = module.call(one)
        interpreter.machine.pace = None
        rounds.append(_outputs(reply, output, inputs, module.watched(one)))
        if index == 0:
            effort = machine.efforts.share(priced.efforts, full, _growth(request, one.inputs))
            work = int(pace.work) * _forwards(request)
            made, most = partial(Module, small, interpreter, configs, one), PATIENCE * pace.work + LEAST_PATIENCE
            tunes = tried.shows(machine, partial(made, tried), one, (output, inputs, module.watched(one)), most)
            if request.priced is None and not request.hides:
                priced = replace(priced, held=machine.limits.untold(full))
            if not request.hides and (request.priced is None or request.priced.held):
                others = [Round(given, body) for given in request.rounds[1:] if not (given.again or given.other)]
                weights = [made, *(partial(Module, small, interpreter, configs, each) for each in others[:1])]
                limited = shows(machine, weights, one, (output, inputs), most)
            live = _live(small, interpreter, configs, one, [output, inputs, module.watched(one)], pace.work)
            if why := machine.gone_by.unmet():
                raise OutOfBounds(why)
            _refuse_idle(full, priced, {small.functions[number].source for number, alive in live.items() if alive})
    found = None if request.priced is not None else priced
    short = machine.extents.short(priced.repeated, full)
    unfilled = machine.extents.unfilled(priced.left_out, priced.repeated, full)
    return codec.pack(Ran(tuple(rounds), found, live, short, unfilled, work, limited, tunes, effort), reply)


def _orders(request: PriceRequest) -> bytes:
    """The configurations of autotuned launches from the fastest to the slowest, by modelled time."""
    the_machine()[0].draw_from(request.key)
    # operators have no configurations
    pricing = Pricing(request.full, profile_of(request.profile), Precision.STRICT, request.known)
    return codec.pack(Prices({step: tuple(order) for step, order in pricing.orders(request.full_specs).items()}))


def run(header: dict[str, Any], body: bytes) -> bytes:
    """The job: a packed `Ran` with its outputs, packed `Prices`, a packed `TooLarge`, or a packed `Failed`."""
    try:
        request: RunRequest | PriceRequest = codec.unpack(header, RunRequest, PriceRequest)
        return _orders(request) if isinstance(request, PriceRequest) else _run(request, body)
    except TooMuchWork:
        return codec.pack(TooLarge())
    except FAILURES as error:
        return codec.pack(_failed(error))
    except (MalformedProgram, wire.BadMessage) as error:
        return codec.pack(Failed(Status.CRASH, f"the trace is not a Program: {error}"))
