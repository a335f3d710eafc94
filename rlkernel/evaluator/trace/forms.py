"""The form of a call: its steps with tensors numbered by appearance, so that equal work is equal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rlkernel.evaluator.program.references import Reference
from rlkernel.evaluator.program.schema import Config, Launch, Literal, Op, Step
from rlkernel.evaluator.program.values import ScalarRef, TensorRef, Value, encode, rewrite

_ELSEWHERE = -1


@dataclass(frozen=True, slots=True)
class Form:
    """Steps with their tensors numbered by appearance, so that equal work is equal."""

    rows: Any
    """The steps as plain data, without the tensors that were there before."""
    outer: tuple[Reference, ...]
    """The tensors and numbers that were there before, in the order in which they appear."""
    own: Mapping[int, int]
    """Tensor of the call -> its number."""


@dataclass(slots=True)
class Alternatives:
    """The configurations of launches as rows, written once for all launches that share them."""

    _rows: dict[int, tuple[tuple[Config, ...], list[Any]]] = field(default_factory=dict)
    """Configurations by their identity, which these keep their own, and their rows."""

    def of(self, configs: tuple[Config, ...]) -> list[Any] | None:
        """The rows of a launch's configurations; None where one of them does something to tensors before it."""
        known = self._rows.get(id(configs))
        if known is None:
            if any(config.before for config in configs):
                return None
            known = self._rows[id(configs)] = configs, [_config(config) for config in configs]
        return known[1]


def form_of(
    inputs: Sequence[int], steps: Sequence[Step], output: Value, began: tuple[int, int], known: Alternatives | None = None
) -> Form:
    """The form of a call: the tensors and numbers from `began` on are its own. `known`: of other calls of the same trace."""
    numbering = _Numbering(began, Alternatives() if known is None else known)
    rows = [[numbering.tensor(number) for number in inputs], *[numbering.step(step) for step in steps], numbering.value(output)]
    return Form(rows, tuple(numbering.outer), numbering.tensors)


class _Numbering:
    """Gives the tensors and numbers of one call their places."""

    def __init__(self, began: tuple[int, int], alternatives: Alternatives) -> None:
        self._first_tensor, self._first_scalar = began
        self._alternatives = alternatives
        self.outer: list[Reference] = []
        self.tensors: dict[int, int] = {}
        self._scalars: dict[int, int] = {}
        self._tuned: dict[int | None, int | None] = {None: None}

    def tensor(self, number: int) -> int:
        """The place of a tensor."""
        if number >= self._first_tensor:
            return self.tensors.setdefault(number, len(self.tensors))
        self.outer.append(TensorRef(number))
        return _ELSEWHERE

    def _scalar(self, number: int) -> int:
        if number >= self._first_scalar:
            return self._scalars.setdefault(number, len(self._scalars))
        self.outer.append(ScalarRef(number))
        return _ELSEWHERE

    def value(self, value: Value) -> Any:
        """An argument. A reference is a tuple, as nothing else is."""
        kind = type(value)
        if kind is TensorRef:
            return "t", self.tensor(value.number)
        if kind is int or kind is str or kind is bool or value is None:
            return value
        if kind is float:
            return value if math.isfinite(value) else encode(value)
        if kind is ScalarRef:
            return "s", self._scalar(value.number)
        if kind is list or kind is tuple:
            return [self.value(item) for item in value]
        return encode(rewrite(value, self._placed))

    def _placed(self, value: Value) -> Value:
        """A reference inside a descriptor or a dict, with its place."""
        if isinstance(value, TensorRef):
            return TensorRef(self.tensor(value.number))
        return replace(value, number=self._scalar(value.number)) if isinstance(value, ScalarRef) else value

    def _named(self, values: Mapping[str, Value]) -> dict[str, Any]:
        return {name: self.value(value) for name, value in values.items()}

    def step(self, step: Step) -> tuple[Any, ...]:
        """A step as a row."""
        if isinstance(step, Op):
            args = [self.value(value) for value in step.args]
            named = self._named(step.kwargs) if step.kwargs else None
            outs = [None if number is None else self.tensor(number) for number in step.outs]
            return step.op, args, named, outs, step.switches
        if isinstance(step, Launch):
            together = self._tuned.setdefault(step.tuned_with, len(self._tuned))
            given = self._named(step.args)
            configs = self._alternatives.of(step.configs)
            if configs is None:
                configs = [(_config(config), [self.step(hook) for hook in config.before]) for config in step.configs]
            return step.function, given, configs, together, step.tuning
        if isinstance(step, Literal):
            return self.tensor(step.out), step.dtype, step.shape, step.data
        return [self.value(value) for value in step.args], self._scalar(step.out), step.operation


def _config(config: Config) -> tuple[Any, ...]:
    """A configuration without what it does before the launch."""
    constants, args = ({name: encode(value) for name, value in named.items()} for named in (config.constants, config.args))
    return constants, config.options, config.grid, config.blocks, args
