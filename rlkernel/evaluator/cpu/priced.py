"""What a candidate costs at full size, and what of the problem it touches there."""

from __future__ import annotations

from dataclasses import replace

from rlkernel.evaluator.cpu.efforts import Efforts
from rlkernel.evaluator.cpu.interpreter import KernelFailed
from rlkernel.evaluator.cpu.language import the_machine
from rlkernel.evaluator.cpu.limits import Limits
from rlkernel.evaluator.cpu.memory import OutOfBounds
from rlkernel.evaluator.cpu.module import Round, configs_alike, step_number, without_data
from rlkernel.evaluator.cpu.neighbours import GoneBy
from rlkernel.evaluator.cpu.pricing import Pricing
from rlkernel.evaluator.cpu.reached import OF_SAMPLED, READ, Shares
from rlkernel.evaluator.devices import profile_of
from rlkernel.evaluator.judging.costs.operator_costs import NoCost
from rlkernel.evaluator.messages.children import Priced, RunRequest
from rlkernel.evaluator.program.kernel_text import KernelRejected
from rlkernel.evaluator.program.replay import StepFailed

FAILURES = (OutOfBounds, KernelFailed, StepFailed, KernelRejected, NoCost)
"""What a candidate's kernels and operators may do instead of ending."""


def priced_at_full(request: RunRequest, compiled: dict[int, int], body: bytes) -> Priced:
    """What the candidate costs at full size. Raises OutOfBounds, KernelFailed, KernelRejected, NoCost."""
    pricing = Pricing(request.full, profile_of(request.profile), request.precision, request.known)
    rooms = {step_number(step): room for step, room in request.rooms.items()}
    rows, unwritten = pricing.rows(request.full_specs, compiled, request.written, rooms)
    machine, _ = the_machine()
    extents = machine.extents
    repeated, left_out = extents.repeated(request.full), extents.left_out(request.full)
    told = extents.told
    unread = pricing.shares.unread(request.reads, lambda: _small_shares(request, compiled, body), OF_SAMPLED if told else READ)
    efforts = machine.efforts.of(request.full)
    return Priced(tuple(rows), unwritten, pricing.idle, repeated, unread, left_out, told, efforts, by_chance=pricing.by_chance)


def _small_shares(request: RunRequest, compiled: dict[int, int], body: bytes) -> Shares:
    """What the candidate touches where results are compared; nothing where it cannot be followed there."""
    machine, _ = the_machine()
    kept = machine.gone_by, machine.hints_on_memory, machine.limits, machine.efforts
    machine.gone_by, machine.hints_on_memory, machine.limits, machine.efforts = GoneBy(), set(), Limits(), Efforts()
    one = Round(request.rounds[0], body)
    pricing = Pricing(request.program, profile_of(request.profile), request.precision)
    alike = [type(step) for step in request.program.forward] == [type(step) for step in request.full.forward]
    try:
        configs = configs_alike(compiled, request.full, request.program)
        pricing.follow(without_data(one.init_inputs), without_data(one.inputs), configs)
    except FAILURES:
        return Shares((0.0,) * len(one.inputs))
    finally:
        machine.gone_by, machine.hints_on_memory, machine.limits, machine.efforts = kept
    return pricing.shares if alike else replace(pricing.shares, made={})
