"""What a reference bears of whole numbers and truth values that no draw has: asked on the host, at the small size.

They may be places in a table, and a place that leads out of it costs a GPU's process, while the host raises an error. What is
borne there is done at full shape where its own inputs have such numbers. Source: ours.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from rlkernel.evaluator.judging.inputs.fixed import MASKS, holds_one_value, is_copy, repeats_rows
from rlkernel.evaluator.judging.inputs.places import places
from rlkernel.evaluator.judging.inputs.unshown import Among, plants_of
from rlkernel.evaluator.judging.references.reference_calls import call, mapped, tensors_of
from rlkernel.evaluator.messages.judgement import NOWHERE, Places, Plant, Stress
from rlkernel.evaluator.program.codes import holds_numbers
from rlkernel.reference import Reference, load_reference
from rlkernel.reference_text import apply_small

if TYPE_CHECKING:
    from rlkernel.evaluator.gpu.problem import GpuProblem

MOST_ELEMENTS = 1 << 22
"""The most elements that all inputs have together where the host calls a reference."""
MOST_SECONDS = 0.25
"""The most of a processor that its first call may take there: up to about forty follow, while a card waits."""


@dataclass(frozen=True, slots=True)
class OnHost:
    """A problem's reference at its small size, on the host."""

    reference: Reference

    @property
    def fixed(self) -> tuple[str, ...]:
        return self.reference.fixed

    def model(self, seed: int) -> nn.Module:
        return self.reference.model(seed).cpu()

    def inputs(self, seed: int) -> list[Any]:
        return mapped(self.reference.inputs(seed), lambda tensor: tensor.cpu())  # type: ignore[no-any-return]


def always_same(problem: GpuProblem) -> Places:
    """The inputs of whole numbers or truth values that are the same in each draw, hold one value, or are copies, and get others
    that stay within the same bounds; none where the host would take long. Raises what the reference raises."""
    host = problem.host
    if host is None:
        return NOWHERE
    given, again = tensors_of(problem.inputs(0)), tensors_of(problem.inputs(1))
    met = places(lambda: host.model(0), host.inputs, (0, 1, 2), Stress.VARIED, moves=False)
    # What is so at the small shape need not be so at the full one.
    turned = [place for place in met.turned if place < len(given) and torch.equal(given[place], again[place])]
    holed = [place for place in met.holed if place < len(given) and holds_one_value(given[place])]
    whole = [place for place in met.apart if place < len(given) and given[place].dtype in MASKS]
    apart = [place for place in whole if is_copy(given, place)]
    rows = [place for place in met.rows if place < len(given) and repeats_rows(given[place])]
    return Places(holed=tuple(holed), turned=tuple(turned), apart=tuple(apart), rows=tuple(rows))


def whole_plants(problem: GpuProblem, until: float) -> Sequence[Plant]:
    """What shows effects of operators among whole numbers and truth values, and lies within what full shape draws. No further one
    is tried after `until`, on the monotonic clock. Raises what the reference raises."""
    host = problem.host
    if host is None:
        return ()
    given = tensors_of(problem.inputs(0))
    found = plants_of(host, problem.source, among=Among.WHOLE, until=until)
    return [one for one in found if isinstance(one, Plant) and _within(one, given)]


def _within(plant: Plant, given: Sequence[torch.Tensor]) -> bool:
    """Whether all that is planted lies between numbers that each of its inputs has."""
    for place in (plant.place, *plant.also):
        if place >= len(given) or holds_numbers(given[place]) or not given[place].numel():
            return False
        low, high = given[place].long().aminmax()
        if not all(float(low) <= value <= float(high) for value in plant.values):
            return False
    return True


def on_host(problem: GpuProblem) -> OnHost | None:
    """A problem's reference on the host; None where it has no whole numbers, or the host would take long. Raises what the
    reference raises."""
    given, source = tensors_of(problem.inputs(0)), problem.source
    one_size = apply_small(source, name=problem.name) == source
    if all(map(holds_numbers, given)) or (one_size and _count(given) > MOST_ELEMENTS):
        return None
    host = OnHost(load_reference(source, small=True, name=problem.name))
    inputs = host.inputs(0)
    if _count(tensors_of(inputs)) > MOST_ELEMENTS:
        return None
    since = time.process_time()
    call(host.model(0), inputs, 0)
    return host if time.process_time() - since <= MOST_SECONDS else None


def _count(given: Sequence[torch.Tensor]) -> int:
    return sum(tensor.numel() for tensor in given)
