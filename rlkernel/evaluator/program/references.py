"""The tensors and numbers of the host that steps refer to: which, which are bound, and steps with others in their place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from rlkernel.evaluator.program.schema import Config, Launch, Literal, Op, Scalar, Step
from rlkernel.evaluator.program.values import Constexpr, Descriptor, Pairs, ScalarRef, TensorRef, Value, rewrite

Reference = TensorRef | ScalarRef
Change = Callable[[Reference], Reference]


def changed(step: Step, change: Change) -> Step:
    """A step with other references in it."""

    def in_value(value: Value) -> Value:
        return change(value) if isinstance(value, (TensorRef, ScalarRef)) else value

    def named(values: Mapping[str, Value]) -> dict[str, Value]:
        return {name: rewrite(value, in_value) for name, value in values.items()}

    def out(number: int) -> int:
        return change(TensorRef(number)).number

    if isinstance(step, Op):
        args = tuple(rewrite(value, in_value) for value in step.args)
        outs = tuple(None if number is None else out(number) for number in step.outs)
        return replace(step, args=args, kwargs=named(step.kwargs), outs=outs)
    if isinstance(step, Literal):
        return replace(step, out=out(step.out))
    if isinstance(step, Scalar):
        args = tuple(rewrite(value, in_value) for value in step.args)
        return Scalar(change(ScalarRef(step.out)).number, step.operation, args)

    def config(one: Config) -> Config:
        if not one.before:
            return one
        before = [changed(hook, change) for hook in one.before]
        return replace(one, before=tuple(hook for hook in before if isinstance(hook, Op)))

    return replace(step, args=named(step.args), configs=tuple(config(one) for one in step.configs))


def bound_by(step: Step) -> list[Reference]:
    """The tensors, or the number, that a step binds."""
    if isinstance(step, Op):
        return [TensorRef(out) for out in step.outs if out is not None]
    if isinstance(step, Scalar):
        return [ScalarRef(step.out)]
    return [TensorRef(step.out)] if isinstance(step, Literal) else []


def references_of(step: Step) -> list[Reference]:
    """The references in a step, those that it binds included."""
    found: list[Reference] = []
    if isinstance(step, Op):
        _gather(step.args, found)
        if step.kwargs:
            _gather(list(step.kwargs.values()), found)
        found += [TensorRef(number) for number in step.outs if number is not None]
    elif isinstance(step, Launch):
        _gather(list(step.args.values()), found)
        for config in step.configs:
            for hook in config.before:
                found += references_of(hook)
    elif isinstance(step, Literal):
        found.append(TensorRef(step.out))
    else:
        _gather(step.args, found)
        found.append(ScalarRef(step.out))
    return found


def _gather(values: Sequence[Value], found: list[Reference]) -> None:
    """Add the references in values to those that were found."""
    for value in values:
        if isinstance(value, (TensorRef, ScalarRef)):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            _gather(value, found)
        elif isinstance(value, (Pairs, Descriptor, Constexpr)):
            rewrite(value, lambda one: _gather([one], found) if isinstance(one, (TensorRef, ScalarRef)) else one)


def needed_from(steps: Iterable[Step], output: Value) -> set[Reference]:
    """The references in steps and in an output."""
    found: list[Reference] = []
    for step in steps:
        found += references_of(step)
    _gather([output], found)
    return set(found)


def tensor_numbers(references: Iterable[Reference]) -> set[int]:
    """The numbers of the tensors among references."""
    return {ref.number for ref in references if isinstance(ref, TensorRef)}
