"""What is done to a problem's inputs beside scaling, so that a round shows what no draw does. Found once, by calls of the
reference.

What the reference reads by index is tried on the host, at its small size, because an index that leads out of a table costs a
GPU's process. All else is tried at full shape on the GPU.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import nn

from rlkernel.evaluator.gpu import driver, on_host
from rlkernel.evaluator.judging.inputs import crowded, enlarged, equals, kept, labels, pressed, unshown
from rlkernel.evaluator.judging.inputs.little import resized_of
from rlkernel.evaluator.judging.inputs.one_sided import one_sided_of
from rlkernel.evaluator.judging.inputs.placing import bytes_of
from rlkernel.evaluator.judging.sizes.distances import tells_places
from rlkernel.evaluator.messages.judgement import NONE_SHOWN, Planting, Shown
from rlkernel.evaluator.program.operators import operators_of
from rlkernel.evaluator.program.schema import Program

if TYPE_CHECKING:
    from rlkernel.evaluator.gpu.problem import GpuProblem

T = TypeVar("T")
MOST_BYTES = 4 << 30
"""The most bytes of all inputs together among which numbers are planted: it takes up to ten times as much memory."""


@dataclass(frozen=True, slots=True)
class OnGpu:
    """A problem's reference as what looks for such inputs calls it."""

    problem: GpuProblem

    @property
    def fixed(self) -> tuple[str, ...]:
        return self.problem.reference.fixed

    def model(self, seed: int) -> nn.Module:
        return self.problem.model(seed)

    def inputs(self, seed: int) -> list[Any]:
        return self.problem.inputs(seed)


def shown_of(problem: GpuProblem, program: Program, source: str, until: float) -> Shown:
    """What may show effects of operators that no draw does, of equal numbers, of labels, of inputs that hardly matter, of
    roundings, of larger whole numbers, of choices, and of gates. `program`: the reference's own trace. Nothing is looked for
    after `until`, on the monotonic clock, nor where inputs are large."""
    reference, looks = OnGpu(problem), list[Callable[[], Sequence[Planting]]]()
    ties = operators_of(program) & equals.OPEN  # planted numbers are equal, and any of them may be taken
    if unshown.may_hide(program, source) and not ties:
        looks.append(lambda: unshown.plants_of(reference, source, among=unshown.Among.REAL, until=until))
        looks.append(lambda: on_host.whole_plants(problem, until))
    if equals.may_repeat(program):
        looks.append(lambda: equals.repeats_of(reference))
    if pressed.may_name(program):
        looks.append(lambda: pressed.pressed_of(reference))
    if labels.may_label(program):
        looks.append(lambda: labels.labels_of(reference))
    looks.append(lambda: resized_of(reference))
    looks.append(lambda: one_sided_of(reference))
    looks.append(lambda: enlarged.enlarged_of(reference))
    if crowded.may_crowd(program):
        looks.append(lambda: crowded.crowded_of(reference, until=until))
    if kept.may_forget(program) or tells_places(program):
        looks.append(lambda: kept.kept_of(reference, until=until))
    if bytes_of(problem.inputs(0)) > MOST_BYTES:
        return NONE_SHOWN
    nothing: Sequence[Planting] = ()
    return Shown.of(one for look in looks if time.monotonic() < until for one in found(look, nothing))


def found(look: Callable[[], T], nothing: T) -> T:
    """What a look finds; nothing where the reference refuses it in its own way, or it takes too much memory. What costs the GPU's
    context is raised, also where the look itself has made nothing of it."""
    try:
        made = look()
    except Exception:  # any failure of the reference's own code says that such inputs are not borne
        if driver.lost_context() is not None:
            raise
    else:
        if driver.lost_context() is not None:
            raise RuntimeError("the GPU's context is lost by inputs that no author draws")
        return made
    torch.cuda.empty_cache()  # here, because an exception's frames hold tensors
    return nothing
