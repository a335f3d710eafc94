"""Whether it shows in a forward's results what kernels do beyond their fixed numbers, see `limits`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import torch

from rlkernel.evaluator.cpu.interpreter import KernelFailed
from rlkernel.evaluator.cpu.limits import Limits, Moved
from rlkernel.evaluator.cpu.machine import Machine
from rlkernel.evaluator.cpu.memory import OutOfBounds
from rlkernel.evaluator.cpu.pace import Pace, TooMuchWork
from rlkernel.evaluator.program.codes import valued
from rlkernel.evaluator.program.replay import StepFailed
from rlkernel.evaluator.program.tensors import flatten

Round = TypeVar("Round", contravariant=True)
SHARES = 1.0, 1 / 256
"""How small fixed numbers are made, beside how much smaller the problem is than at full shape."""
ALIKE = 0.02
"""How far two ways to compute the same may be from each other, relative: another order of a sum, tf32, half precision."""


class Module(Protocol[Round]):
    """A candidate that was constructed."""

    def call(self, one: Round) -> Any: ...

    def watched(self, one: Round) -> Any: ...


def shows(machine: Machine, modules: Sequence[Callable[[], Module[Round]]], one: Round, left: Any, most_work: float) -> bool:
    """Whether the first call of one of some modules leaves something else in a round where the fixed numbers that decide at full
    shape alone decide here, too: the first of them has `left` this; the others have other weights, since nobody sees that a scale
    of ones is left out. One that fails then says nothing. Ends what is noted of comparisons."""
    ways = [moved for share in SHARES if (moved := machine.limits.hidden(share))]
    try:
        for place, made in enumerate(modules if ways else ()):
            left = left if place == 0 else _left(machine, {}, made, one, most_work)
            found = (_left(machine, moved, made, one, most_work) for moved in ways)
            if left is not None and any(other is not None and differ(left, other) for other in found):
                return True
        return False
    finally:
        machine.limits, machine.pace = Limits(), None


def _left(machine: Machine, moved: Moved, made: Callable[[], Module[Round]], one: Round, most_work: float) -> Any:
    """What the first call of a module leaves where these numbers are others; None where it fails."""
    machine.limits.moved, machine.pace = moved, Pace(most_work)
    try:
        return made().call(one)
    except (KernelFailed, OutOfBounds, StepFailed, TooMuchWork):
        return None


def _tensors(value: Any) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    flatten(value, found)
    return [valued(t.detach().resolve_conj().resolve_neg()) for t in found]


def differ(left: Any, found: Any) -> bool:
    """Whether two calls leave results that are not alike."""
    one, other = _tensors(left), _tensors(found)
    return len(one) != len(other) or any(map(_differs, one, other))


def _differs(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return True
    if one.is_complex():
        one, other = torch.view_as_real(one), torch.view_as_real(other)
    finite = torch.isfinite(one)
    if not torch.equal(finite, torch.isfinite(other)):
        return True
    before, after = one[finite].double(), other[finite].double()
    return bool(torch.linalg.vector_norm(before - after) > ALIKE * torch.linalg.vector_norm(before))
