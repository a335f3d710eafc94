"""Numbers of an input at which an operator jumps: `x > 0.5` and `x >= 0.5` differ at a half alone.

No draw of real numbers meets such a bound, so that whoever takes the other side there would be right. Where a reference compares
an input with a number, looks for its numbers between edges, or gives it to an operator that jumps, that number is planted, and
the reference is called twice: once with the operator as it is, and once with what somebody may write in its place. Where these
differ, candidates are judged there. Of a number that the input's dtype does not hold nothing is asked, since it is rounded for
the comparison, and in half precision a kernel may compare in float32.

Zeros are planted in all inputs that such an operand is made of, element by element: whatever is done to them, zero times a number
and zero plus zero are zero in each arithmetic. Other numbers of what is made of an input are left alone, because another order
of the same steps may miss them.

So it is with an input that is compared with another one, or looked up between the edges that another one holds: numbers of that
one are planted in it, since they are others in each draw. Source: ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from rlkernel.evaluator.judging.errors.tolerance import FLOOR
from rlkernel.evaluator.judging.inputs.bearing import Origins, Usual, is_same
from rlkernel.evaluator.judging.references.plan import SeededReference
from rlkernel.evaluator.judging.references.reference_calls import call, mapped_at, tensors_of
from rlkernel.evaluator.messages.judgement import Met, Plant

OTHER_SIDE = {"gt": torch.ge, "ge": torch.gt, "lt": torch.le, "le": torch.lt}
"""What takes equal numbers to the other side, by the comparison."""
EQUALITY: dict[str, Callable[..., torch.Tensor]] = {
    "eq": lambda x, y: torch.zeros_like(x == y),
    "ne": lambda x, y: torch.ones_like(x == y),
}
"""What somebody may write who has never seen numbers of two inputs meet."""
LOOKUPS = {"searchsorted", "bucketize"}
JUMPS: dict[str, Callable[..., torch.Tensor]] = {
    "sign": lambda x: torch.where(x >= 0, 1.0, -1.0).to(x.dtype),
    "round": lambda x: torch.floor(x + 0.5),
    "threshold": lambda x, limit, value: torch.where(x >= limit, x, value),
    "hardshrink": lambda x, limit=0.5: torch.where(x.abs() < limit, 0.0, x),
    "histc": lambda x, bins, low, high: torch.histc(torch.where(x == high, low - 1.0, x), bins, low, high),
    "sinc": lambda x: torch.where(x == 0, 0.0, torch.sinc(x)),
    "xlogy": lambda x, y: torch.where(x == 0, 1.0, torch.xlogy(x, y)),
}
"""Operators that jump, or have a value of their own, and what gives another one there alone."""
_WHERE: dict[str, tuple[float, ...]] = {"sign": (0.0,), "round": (0.5, 1.5, -0.5, -1.5), "sinc": (0.0,), "xlogy": (0.0,)}
"""Where they do; the others at what they are given."""
_GIVEN = {"histc": 3}
"""The place of the argument that is where, which the others have second."""
COMPARED = OTHER_SIDE | EQUALITY
MEETING = LOOKUPS | JUMPS.keys()
"""Operators besides comparisons whose numbers may be met."""
MOST_MET = 2
"""Numbers of which it is found out whether they matter."""
APART = 0.02
"""How far an answer moves that matters, relative: nothing below is told from half precision."""
FLOORS = 20.0
"""The same in floors of its dtype, where that is less: a sign is multiplied by a rate that is small."""
SHARE = 0.125
"""The share of an input's elements that get a number of another one; one at least."""
RARE = 1e-5
"""The share of elements below which something is there by chance: two draws of 16 million normal numbers meet in one or two."""
Planted = Callable[[list[Any], Plant | Met], list[Any]]


@dataclass(frozen=True, slots=True)
class Bound:
    """Numbers at which an operator jumps to which an input is given, in one call of a forward."""

    call: int
    what: Plant | Met
    """What puts them into that input."""


class _Jumps(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the bounds that no number of an input meets, or gives another value at one of them."""

    def __init__(self, inputs: Sequence[torch.Tensor], other: int | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._origins, self._given = Origins(inputs), inputs
        self._other = other
        self.bounds: list[Bound] = []
        self.made: list[Bound] = []
        """Those of what is made of inputs element by element, which zeros in all of these meet."""
        self._calls = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        name, kwargs = str(func).split(".")[1], dict(kwargs or {})
        if name not in COMPARED and name not in MEETING:
            made = func(*args, **kwargs)
            self._origins.note(func, [*args, *kwargs.values()], made)
            return made
        self._calls += 1
        if self._other == self._calls:
            return _otherwise(func, name, args, kwargs)
        made = func(*args, **kwargs)
        operand, against = (args[1], args[0]) if name == "searchsorted" else (args[0], args[1] if len(args) > 1 else None)
        if self._other is None and isinstance(operand, torch.Tensor) and operand.is_floating_point():
            place, other = self._origins.itself(operand), self._whole(against)
            numbers = _numbers(name, args, kwargs) if name not in EQUALITY else ()
            if place is not None and other is not None and (name in COMPARED or name in LOOKUPS):
                what = _met(place, other, self._given, name, made.shape)
                if what is not None and self._whole(operand) == place and not _meet(operand, self._given[other], name):
                    self.bounds.append(Bound(self._calls, what))
            elif place is not None and numbers and all(_is_held_and_not_met(operand, number) for number in numbers):
                self.bounds.append(Bound(self._calls, Plant(place, numbers)))
            elif place is None and 0.0 in numbers and _is_held_and_not_met(operand, 0.0):
                self._note_made(operand)
        return made

    def _note_made(self, operand: torch.Tensor) -> None:
        """Zeros in all inputs that an operand is made of may make zeros of it: `sign(0.9 * m + 0.1 * g)`."""
        places = sorted(self._origins.all_of(operand))
        if places and all(self._given[place].is_floating_point() for place in places):
            self.made.append(Bound(self._calls, Plant(places[0], (0.0,), also=tuple(places[1:]))))

    def _whole(self, tensor: Any) -> int | None:
        """The place of the input that a tensor is as a whole; None of any other."""
        if not isinstance(tensor, torch.Tensor) or not tensor.is_floating_point():
            return None
        place = self._origins.itself(tensor)
        return place if place is not None and is_same(tensor, self._given[place]) else None


def _met(place: int, other: int, given: Sequence[torch.Tensor], name: str, shape: torch.Size) -> Met | None:
    """What lets numbers of two inputs meet: what is looked up gets some of the edges, and of two that are compared the one that
    has the result's shape gets those of the other one; None where neither has it."""
    if name in LOOKUPS:
        return Met(place, other, anywhere=True)
    pairs = ((one, another) for one, another in ((place, other), (other, place)) if given[one].shape == shape)
    return next((Met(one, another, anywhere=False) for one, another in pairs), None)


def is_often(there: torch.Tensor) -> bool:
    """Whether so many elements are true that those of another draw are, too.

    >>> [is_often(torch.arange(1 << size) == 7) for size in (4, 16, 20)]
    [True, True, False]
    """
    count = int(there.sum())
    return count > 0 and count >= RARE * there.numel()


def _meet(operand: torch.Tensor, against: torch.Tensor, name: str) -> bool:
    """Whether enough numbers of an operand are those that it is compared with, or looked up between."""
    return is_often(torch.isin(operand, against) if name in LOOKUPS else operand == against)


def _otherwise(func: Any, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """What an operator gives, and another value where it jumps."""
    if name in LOOKUPS:
        right = kwargs.pop("side", None) == "right" or kwargs.pop("right", False)
        return func(*args, **kwargs, right=not right)
    return COMPARED[name](*args) if name in COMPARED else JUMPS[name](*args)


def _numbers(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[float, ...]:
    """Where an operator jumps; nothing where that is no number, or differs from place to place."""
    if name in JUMPS:
        if kwargs or (name in _GIVEN and len(args) <= _GIVEN[name]):
            return ()
        place = _GIVEN.get(name, 1)
        return _WHERE[name] if name in _WHERE else (float(args[place] if len(args) > place else 0.5),)
    against = args[0] if name == "searchsorted" else args[1]
    if not isinstance(against, torch.Tensor):
        return (float(against),)
    if against.numel() == 0 or against.is_complex() or (against.numel() > 1 and (name not in LOOKUPS or against.dim() > 1)):
        return ()
    return (float(against.flatten()[against.numel() // 2]),)


def _is_held_and_not_met(operand: torch.Tensor, number: float) -> bool:
    """Whether an input's dtype holds a number, and the input has it nowhere but by chance."""
    held = torch.tensor(number, dtype=torch.float64).to(operand.dtype)
    return math.isfinite(number) and float(held) == number and not is_often(operand == held.to(operand.device))


def met_by(inputs: list[Any], what: Met, seed: int) -> list[Any]:
    """The arguments of forward with some elements of an input that are those of another one, at places drawn from `seed`."""
    other = tensors_of(inputs)[what.other]

    def change(tensor: torch.Tensor) -> torch.Tensor:
        generator = torch.Generator(tensor.device).manual_seed(seed)
        drawn = torch.rand(tensor.shape, generator=generator, device=tensor.device)
        if what.anywhere:
            which = torch.randint(other.numel(), tensor.shape, generator=generator, device=tensor.device)
            numbers = other.flatten()[which]
        else:
            numbers = other.broadcast_to(tensor.shape)
        return torch.empty_like(tensor).copy_(torch.where(drawn <= drawn.min().clamp(min=SHARE), numbers, tensor))

    return mapped_at(inputs, what.place, change)


def met_of(reference: SeededReference, model: nn.Module, usual: Usual, planted: Planted) -> Iterator[Plant | Met]:
    """What shows the value at a bound, where nothing else does."""
    inputs = reference.inputs(0)
    watching = _Jumps(tensors_of(inputs))
    if not usual.ends(model, inputs, watching):
        return
    first = {bound.what: bound.call for bound in reversed([*watching.bounds, *watching.made])}
    for what, number in [*reversed(first.items())][:MOST_MET]:
        one, other = (_outputs(reference, model, usual, what, planted, changed) for changed in (None, number))
        if one is not None and other is not None and any(map(_apart, one, other)):
            yield what


def _outputs(
    reference: SeededReference, model: nn.Module, usual: Usual, what: Plant | Met, planted: Planted, other: int | None
) -> list[torch.Tensor] | None:  # fmt: skip
    """What a reference gives where numbers are planted, with another value at the bound in one of its calls; None where it does
    not bear them."""
    first, again = (planted(reference.inputs(0), what) for _ in range(2))
    if not usual.borne(model, first, _Jumps(tensors_of(first), other)):
        return None
    with _Jumps(tensors_of(again), other):
        return [tensor.clone() for tensor in tensors_of(call(model, again, usual.seed))]


def _apart(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two answers differ by more than roundings."""
    if one.shape != other.shape or not one.is_floating_point():
        return one.shape != other.shape or not torch.equal(one, other)
    before, after, apart = one.double(), other.double(), min(APART, FLOORS * FLOOR.get(one.dtype, APART))
    return not torch.allclose(before, after, rtol=apart, atol=apart * float(before.abs().mean()), equal_nan=True)
