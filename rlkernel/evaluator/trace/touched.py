"""Which tensors a recorded step is given, makes and writes to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rlkernel.evaluator.program.operators import allocates, is_random, operator, writes
from rlkernel.evaluator.program.references import bound_by
from rlkernel.evaluator.program.schema import Launch, Op, Scalar, Step
from rlkernel.evaluator.program.values import ScalarRef, TensorRef, Value, rewrite


def made_by(step: Step) -> list[int]:
    """The tensors that a step binds."""
    return [ref.number for ref in bound_by(step) if isinstance(ref, TensorRef)]


def _found(values: Iterable[Value], kind: type[Any]) -> list[Any]:
    """The references of one kind among a step's values."""
    found: list[Any] = []

    def look(value: Value) -> Value:
        if isinstance(value, kind):
            found.append(value)
        return value

    for value in values:
        rewrite(value, look)
    return found


def _values(step: Step) -> list[Value]:
    if isinstance(step, Op):
        return [*step.args, *step.kwargs.values()]
    if isinstance(step, Launch):
        return list(step.args.values())
    return list(step.args) if isinstance(step, Scalar) else []


def given_to(step: Step) -> list[int]:
    """The tensors among a step's arguments."""
    return [ref.number for ref in _found(_values(step), TensorRef)]


def takes_numbers(step: Step) -> bool:
    """Whether a number of the host's is among a step's arguments."""
    return bool(_found(_values(step), ScalarRef))


def draws(step: Step) -> bool:
    """Whether a step's values are random, or memory that nobody has written."""
    return isinstance(step, Op) and (allocates(step) or is_random(step.op))


def written_by(step: Step) -> list[int]:
    """The tensors that a step other than a launch writes to."""
    if not isinstance(step, Op) or not writes(step):
        return []
    schema = operator(step.op)._schema
    named = {**dict(zip([a.name for a in schema.arguments], step.args, strict=False)), **step.kwargs}
    written = [named[a.name] for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write and a.name in named]
    return [ref.number for ref in _found(written, TensorRef)]
