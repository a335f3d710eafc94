"""Whether a reference compares places, and the sizes at which results are compared are too small to show what for.

A window of 128 among 32 keys leaves nothing out, and whoever ignores it is right there. So comparisons and limits of numbers that
depend on nothing that is drawn are computed at both sizes: those of `torch.arange`, of triangles and of bands. Example:
`i - j < 128` is true everywhere at 32 places, and not at 2,048. So it is with what parts places, as `i // 256` does, and with
slices: `x[:, :1000]` of 96 columns is all of them; and with `if x.shape[1] >= 1024:` where a branch computes what no other does.
Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from rlkernel.evaluator.judging.costs.operator_costs import TRIANGLES
from rlkernel.evaluator.program.operators import COMPARISONS, allocates, base_name, is_random, operator, writes
from rlkernel.evaluator.program.replay import Replay, StepFailed
from rlkernel.evaluator.program.schema import Literal, Op, Program, Step
from rlkernel.evaluator.program.values import ScalarRef, TensorRef

LIMITS = {"clamp", "clamp_min", "clamp_max", "maximum", "minimum"} | TRIANGLES
QUOTIENTS = {"floor_divide", "__rshift__", "bitwise_right_shift"}
RESTS = {"remainder", "fmod", "__and__", "bitwise_and"}
SLICES = {"slice", "alias"}
"""Slices: of one that takes all, PyTorch makes an alias."""
MOST_ELEMENTS = 1 << 24
"""The elements of a tensor, and 8 times as many of all, up to which places are computed."""
Shape = tuple[int, ...]


def hides_distances(small: Program, full: Program, shapes_small: Sequence[Shape], shapes_full: Sequence[Shape]) -> bool:
    """Whether something is told apart by places at full shape and not at the small one, or a branch of forward that only large
    sizes take computes something else there. `shapes_small`, `shapes_full`: of each Program's tensors by their numbers."""
    if _computes(full) - _computes(small):
        return True
    alike, other = ([_does(step) for step in _steps(program) if isinstance(step, Op)] for program in (small, full))
    if alike != other:
        return False
    cut = _cut(small, shapes_small)
    if any(part and not cut.get(place, True) for place, part in _cut(full, shapes_full).items()):
        return True
    if not (asked := [place for place in _of_places(full) if place in _of_places(small)]):
        return False
    there = _shown(small, shapes_small)
    asked = [place for place in asked if there.get(place) is False]
    if not asked:
        return False
    at_full = _shown(full, shapes_full)
    return any(at_full.get(place, False) for place in asked)


def tells_places(program: Program) -> bool:
    """Whether a reference compares, limits or parts numbers that depend on nothing that is drawn."""
    return bool(_of_places(program))


def _computes(program: Program) -> set[str]:
    """The operators of a forward that are no views."""
    return {base_name(step.op) for step in program.forward if isinstance(step, Op) and not operator(step.op).is_view}


def _does(step: Op) -> str:
    """What tells an operator from others."""
    return "slice" if base_name(step.op) in SLICES else step.op


def cuts(program: Program) -> bool:
    """Whether a reference has slices."""
    return any(isinstance(step, Op) and base_name(step.op) in SLICES for step in _steps(program))


def _cut(program: Program, shapes: Sequence[Shape]) -> dict[int, bool]:
    """Slices by their place -> whether they are a part of what is sliced, and neither all of it nor nothing."""
    found: dict[int, bool] = {}
    for place, step in enumerate(_steps(program)):
        if isinstance(step, Op) and base_name(step.op) in SLICES and step.outs[0] is not None:
            whole, part = (shapes[number] for number in (next(_numbers(step.args)), step.outs[0]) if number is not None)
            found[place] = whole != part and 0 not in part
    return found


def _steps(program: Program) -> Iterator[Step]:
    yield from program.init
    yield from program.forward


def _tells(step: Step) -> bool:
    return isinstance(step, Op) and base_name(step.op) in COMPARISONS | LIMITS | QUOTIENTS | RESTS


def _numbers(value: Any) -> Iterator[int | None]:
    """The numbers of the tensors in an argument; None for a number of the host that is not known."""
    if isinstance(value, TensorRef):
        yield value.number
    elif isinstance(value, ScalarRef):
        yield None
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _numbers(item)


def _is_known(step: Step, known: set[int]) -> bool:
    """Whether a step's results depend on nothing that is drawn."""
    if isinstance(step, Literal):
        return True
    if not isinstance(step, Op) or allocates(step) or is_random(".".join(step.op.split(".")[:2])):
        return False
    return all(number in known for number in _numbers([*step.args, *step.kwargs.values()]))


def _outs(step: Step) -> list[int]:
    found = (step.out,) if isinstance(step, Literal) else step.outs if isinstance(step, Op) else ()
    return [number for number in found if number is not None]


def _of_places(program: Program) -> list[int]:
    """The steps that tell places apart, by their place."""
    known, found = set[int](), list[int]()
    for place, step in enumerate(_steps(program)):
        if _is_known(step, known):
            known.update(_outs(step))
            if _tells(step) and any(True for _ in _numbers([*step.args])):  # type: ignore[union-attr]
                found.append(place)
        else:
            known.difference_update(_outs(step))
    return found


class _Places(Replay):
    """Computes what depends on nothing that is drawn."""

    def __init__(self, program: Program) -> None:
        super().__init__(program, torch.device("cpu"), lambda *call: None)

    def shown(self, shapes: Sequence[Shape]) -> dict[int, bool]:
        """Steps that tell places apart -> whether they have both answers, or change something; not those that are too large."""
        known, found, left = set[int](), dict[int, bool](), 8 * MOST_ELEMENTS
        for place, step in enumerate(_steps(self.program)):
            outs = _outs(step)
            size = sum(int(torch.Size(shapes[number]).numel()) for number in outs)
            if not _is_known(step, known) or size > min(MOST_ELEMENTS, left):
                known.difference_update(outs)
                continue
            before = self._operands(step) if _tells(step) else []
            try:
                self._step(place, step, None)
            except StepFailed:
                known.difference_update(outs)
                continue
            known.update(outs)
            left -= size
            if before and outs:
                found[place] = self._tells_apart(step, before, self.values[outs[0]])
        return found

    def _operands(self, step: Step) -> list[torch.Tensor]:
        assert isinstance(step, Op)
        numbers = [number for number in _numbers([*step.args]) if number is not None]
        copied = writes(step)
        return [self.values[number].clone() if copied else self.values[number] for number in numbers]

    @staticmethod
    def _tells_apart(step: Step, operands: list[torch.Tensor], made: torch.Tensor) -> bool:
        assert isinstance(step, Op)
        if (name := base_name(step.op)) in COMPARISONS:
            return bool(made.any()) and not bool(made.all())
        if name in QUOTIENTS:
            return bool(made.any())
        if name in RESTS:
            return made.dtype != torch.bool and bool((made != operands[0]).any())
        return all(bool((made != operand).any()) for operand in operands)


def _shown(program: Program, shapes: Sequence[Shape]) -> dict[int, bool]:
    return _Places(program).shown(shapes)
