"""Calls of forward as values that can be compared: what calls do alike, what the first alone does, what each leaves to the next.

Two calls do the same work if they take the same steps on the same tensors, or on tensors that the call before has left in their
place. Example: `self.mean = 0.9 * self.mean + 0.1 * x.mean(0)` reads in call 2 what call 1 has made.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rlkernel.evaluator.program.references import Reference
from rlkernel.evaluator.program.schema import Step
from rlkernel.evaluator.program.values import ScalarRef, TensorRef, Value
from rlkernel.evaluator.trace.forms import Alternatives, Form, form_of

_NEVER = sys.maxsize


@dataclass(frozen=True, slots=True)
class Call:
    """One call of forward as it was recorded. Tensors and numbers from `began` on are its own."""

    began: tuple[int, int]
    """How many tensors, and numbers of the host, there were before it."""
    inputs: tuple[int, ...]
    reads: tuple[Step, ...]
    """What must run before it, for the numbers of the host that it takes."""
    steps: tuple[Step, ...]
    output: Value
    state_before: Mapping[str, int]
    """Parameter and buffer names -> tensor."""
    state_after: Mapping[str, int]
    known: Alternatives
    """The configurations of the trace's launches."""
    form: Form = field(init=False)
    """The call's steps so that those of equal work are equal."""

    def __post_init__(self) -> None:
        state = [[name, TensorRef(number)] for states in (self.state_before, self.state_after) for name, number in states.items()]
        form = form_of(self.inputs, (*self.reads, *self.steps), [self.output, state], self.began, self.known)
        object.__setattr__(self, "form", form)


@dataclass(frozen=True, slots=True)
class Link:
    """How a call follows on one that does the same work."""

    carried: Mapping[int, int]
    """Tensor that the first takes from before -> tensor of the first that the second takes in its place."""
    places: tuple[int | None, ...]
    """For each of the first's outer references, the number of the tensor that takes its place; None: it stays."""


def link(first: Call, second: Call) -> Link | None:
    """How `second` follows on `first`; None if it does other work."""
    one, two = first.form, second.form
    if one.rows != two.rows or len(one.outer) != len(two.outer):
        return None
    taken: dict[Reference, Reference] = {}
    places: list[int | None] = []
    for old, new in zip(one.outer, two.outer, strict=True):
        if taken.setdefault(old, new) != new or (new != old and (isinstance(new, ScalarRef) or new.number not in one.own)):
            return None
        places.append(None if new == old else one.own[new.number])
    return Link({old.number: new.number for old, new in taken.items() if old != new}, tuple(places))


def alike(one: Call, other: Call, carried: Mapping[int, int], since: tuple[int, int] = (_NEVER, _NEVER)) -> bool:
    """Whether a later call does the same work, whatever it finds in the place of what is `carried`, and with what was made anew
    after there were so many tensors and numbers of the host."""
    first, second = one.form, other.form
    if first.rows != second.rows or len(first.outer) != len(second.outer):
        return False
    pairs = zip(first.outer, second.outer, strict=True)
    return all(
        old == new or (isinstance(old, TensorRef) and old.number in carried) or new.number >= since[isinstance(new, ScalarRef)]
        for old, new in pairs
    )


@dataclass(frozen=True, slots=True)
class Steady:
    """What all calls but perhaps the first do."""

    prepared: tuple[Call, ...]
    """The calls that come before, of which at least one does something else."""
    call: Call
    carried: Mapping[int, int]
    latest: Mapping[int, int]
    """Tensor in the place of a carried one after any of the calls -> the carried one."""


def steady(make: Callable[[], Call], warm: int = 0) -> Steady | None:
    """Call forward, which is what `make` does, until two calls do the same work; None if they never do. The first `warm` calls
    prepare, whatever they do."""
    prepared = tuple(make() for _ in range(warm))
    first, second = make(), make()
    found = link(first, second)
    if found is not None:
        return _settled(prepared, first, second, found, make)
    third = make()
    found = link(second, third)
    return None if found is None else _settled((*prepared, first), second, third, found, make)


def _settled(prepared: tuple[Call, ...], call: Call, after: Call, found: Link, make: Callable[[], Call]) -> Steady | None:
    latest: dict[int, int] = {}
    if found.carried:
        once_more = make()
        again = link(after, once_more)
        if again is None or again.places != found.places:
            return None
        latest = {new: old for old, new in found.carried.items()}
        latest |= {new: latest.get(old, old) for old, new in again.carried.items()}
        left = zip(again.carried.values(), _left(once_more, again, after), strict=True)
        latest |= {new: latest[old] for old, new in left}
    return Steady(prepared, call, found.carried, latest)


def _left(call: Call, like: Link, before: Call) -> list[int]:
    """What `call`, which does the same work as `before`, leaves in the places of what `before` has left."""
    numbers, own = before.form.own, {name: number for number, name in call.form.own.items()}
    return [own[numbers[number]] for number in like.carried.values()]
