"""Numbers of an input that are the very one with which they are compared: `x > 0.5` and `x >= 0.5` differ there alone.

No draw of real numbers meets a bound, so that whoever takes the other side there would be right. Where a reference compares an
input with a number, or looks for its numbers between edges, that number is planted, and the reference is called twice: once with
the comparison as it is, and once with that which takes equal numbers to the other side. Where these differ, candidates are judged
there. Of a number that the input's dtype does not hold nothing is asked, since it is rounded for the comparison, and in half
precision a kernel may compare in float32. Source: ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from rlkernel.evaluator.judging.inputs.bearing import Usual
from rlkernel.evaluator.judging.references.plan import SeededReference
from rlkernel.evaluator.judging.references.reference_calls import call, tensors_of
from rlkernel.evaluator.messages.judgement import Plant

OTHERS = {"gt": torch.ge, "ge": torch.gt, "lt": torch.le, "le": torch.lt}
"""The comparisons that take equal numbers to the other side."""
LOOKUPS = {"searchsorted", "bucketize"}
MOST_MET = 2
"""Numbers of which it is found out whether they matter."""
APART = 0.02
"""How far an answer moves that matters, relative: nothing below is told from half precision."""
Planted = Callable[[list[Any], Plant], list[Any]]


@dataclass(frozen=True, slots=True)
class Bound:
    """What an input is compared with in one call of a forward."""

    call: int
    place: int
    number: float


class _Comparisons(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the bounds that no number of an input meets, or takes equal numbers to the other side at one of them."""

    def __init__(self, inputs: Sequence[torch.Tensor], other: int | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._inputs = {t.untyped_storage().data_ptr(): place for place, t in enumerate(inputs) if t.numel()}
        self._other = other
        self.bounds: list[Bound] = []
        self._calls = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        name, kwargs = str(func).split(".")[1], dict(kwargs or {})
        if name not in OTHERS and name not in LOOKUPS:
            return func(*args, **kwargs)
        self._calls += 1
        operand, against = (args[1], args[0]) if name == "searchsorted" else (args[0], args[1])
        if self._other is None and isinstance(operand, torch.Tensor):
            self.bounds.extend(self._bounds(operand, against))
        elif self._other == self._calls:
            if name in OTHERS:
                return OTHERS[name](operand, against)
            right = kwargs.pop("side", None) == "right" or kwargs.pop("right", False)
            return func(*args, **kwargs, right=not right)
        return func(*args, **kwargs)

    def _bounds(self, operand: torch.Tensor, against: Any) -> Iterator[Bound]:
        place = self._inputs.get(operand.untyped_storage().data_ptr())
        if place is None or not operand.is_floating_point():
            return
        numbers = against.flatten() if isinstance(against, torch.Tensor) else torch.tensor([against], dtype=torch.float64)
        if isinstance(against, torch.Tensor) and numbers.numel() > 1 and against.dim() != 1:
            return
        number = float(numbers[numbers.numel() // 2]) if numbers.numel() else math.nan
        held = torch.tensor(number, dtype=torch.float64).to(operand.dtype)
        if math.isfinite(number) and float(held) == number and not bool((operand == held).any()):
            yield Bound(self._calls, place, number)


def met_of(reference: SeededReference, model: nn.Module, usual: Usual, planted: Planted) -> Iterator[Plant]:
    """What shows on which side of a bound numbers are that are the bound itself, where nothing else does."""
    inputs = reference.inputs(0)
    watching = _Comparisons(tensors_of(inputs))
    if not usual.ends(model, inputs, watching):
        return
    first = {(bound.place, bound.number): bound for bound in reversed(watching.bounds)}
    for bound in [*reversed(first.values())][:MOST_MET]:
        plant = Plant(bound.place, (bound.number,))
        one, other = (_outputs(reference, model, usual, plant, planted, number) for number in (None, bound.call))
        if one is not None and other is not None and any(map(_apart, one, other)):
            yield plant


def _outputs(
    reference: SeededReference, model: nn.Module, usual: Usual, plant: Plant, planted: Planted, other: int | None
) -> list[torch.Tensor] | None:  # fmt: skip
    """What a reference gives where numbers are planted, with equal ones on the other side in one of its comparisons; None where
    it does not bear them."""
    first, again = (planted(reference.inputs(0), plant) for _ in range(2))
    if not usual.borne(model, first, _Comparisons(tensors_of(first), other)):
        return None
    with _Comparisons(tensors_of(again), other):
        return [tensor.clone() for tensor in tensors_of(call(model, again, usual.seed))]


def _apart(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two answers differ by more than roundings."""
    if one.shape != other.shape or not one.is_floating_point():
        return one.shape != other.shape or not torch.equal(one, other)
    before, after = one.double(), other.double()
    return not torch.allclose(before, after, rtol=APART, atol=APART * float(before.abs().mean()), equal_nan=True)
