"""What `__init__` folds from weights is folded from the weights that forward is judged with.

Those differ from the ones that `__init__` draws: constants have other values, and in one round weights are scaled. State that a
candidate shares with its reference is known by its name. A weight that it draws and keeps under no such name, such as one that
is transposed at once, is known by its numbers: they are the reference's, because both draw from one seed, maybe before they were
rounded to half precision. A weight that had the
reference's numbers until `__init__` has changed them, such as one that is scaled in place, stays changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any

import torch

from rlkernel.evaluator.program.codes import holds_numbers
from rlkernel.evaluator.program.operators import operator
from rlkernel.evaluator.program.schema import Launch, Literal, Op, Scalar, Step
from rlkernel.evaluator.program.tensors import overwrite
from rlkernel.evaluator.program.values import Descriptor, Value

OUT_OF_RANGE = 2.0**26
"""By what one round multiplies or divides weights: usual values divided by it are zero in half precision, and usual ones times
it infinite."""
OUTLIER = 64.0
"""By what one round multiplies a few elements of weights, see `judging.references.outliers`."""
HALVED = 0.5
"""By what rounds at other constants multiply some elements of weights, see `judging.references.reference_calls.halve_some`."""
LOOKED_AT = 4096
"""Elements that tell whether a weight has outliers, one in 256 of those that may."""
CHANGES = {"mul_": 1, "div_": 1, "add_": 0, "sub_": 0}
"""Operators that change a tensor by its own numbers, and the operand with which they change nothing."""
ROUNDING = 0.01
"""What a factor may change of a number besides, relative: bfloat16 rounds by 0.004."""


class Folding:
    """Gives weights to what a Program's `__init__` has made of them so far."""

    def __init__(
        self,
        state: Mapping[str, int],
        given: Mapping[str, torch.Tensor],
        values: Mapping[int, torch.Tensor],
        value_of: Callable[[Value], Any],
        before_comparing: Callable[[], None],
    ) -> None:
        """`state`: tensors of the Program by name; `values`: of its tensors, by number, as they are made; `before_comparing`:
        called before tensors are compared, e.g. to wait for a GPU."""
        self._state, self._given, self._values = state, given, values
        self._value_of, self._before_comparing = value_of, before_comparing
        self._of_storage: dict[int, list[int]] = {}
        """Storage -> the tensors of the Program that lie in it, so that a step need not look at all tensors that there are."""
        self._note_made(values)
        self._known: list[tuple[str, torch.Tensor]] = []
        """Weights that were known by their numbers, and the tensors that held these."""
        self._drawn: dict[str, torch.Tensor] = {}
        """Weights of which tensors held the reference's own numbers before `__init__` went on with them, and these tensors."""
        self._given_once: set[tuple[str, int]] = set()
        """Weights, and storages that they were given to: what these hold from then on says nothing of what was drawn."""

    def before(self, step: Step) -> None:
        """Before a step reads weights that are made by then, give them their values."""
        if not self._given or isinstance(step, Literal):
            return
        read = self._read_by(step)
        numbers = sorted(number for storage in read for number in self._of_storage.get(storage, ()))
        mine = [self._values[number] for number in numbers]
        for name, weight in self._given.items() if mine else ():
            if name in self._drawn:  # it was given where it was drawn: what was made of it since is `__init__`'s own work
                continue
            own = self._values.get(self._state[name]) if name in self._state else None
            if own is not None and _alike(own, weight):
                if own.untyped_storage()._cdata in read:
                    self._note_if_drawn(name, own, weight)
                    overwrite(own, weight)
                continue
            for tensor in mine:
                if _alike(tensor, weight) or (name not in self._state and _finer(tensor, weight)):
                    self._before_comparing()
                    if _scaled(tensor.to(weight.dtype), weight):
                        self._note_if_drawn(name, tensor, weight)
                        overwrite(tensor, weight)
                        self._known.append((name, tensor))

    def after(self, step: Step) -> None:
        """Once a step has made its tensors."""
        if self._given and isinstance(step, (Literal, Op)):
            self._note_made(step.outs if isinstance(step, Op) else (step.out,))

    def _note_made(self, numbers: Iterable[int | None]) -> None:
        for number in numbers:
            tensor = None if number is None else self._values.get(number)
            if number is not None and tensor is not None:
                self._of_storage.setdefault(tensor.untyped_storage()._cdata, []).append(number)

    def left(self, state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """What the state that was made is still to be given: all weights but those that went into it by their numbers, and of
        which it holds something else, such as the transposed weight. For a weight that `__init__` has changed, what it made."""
        kept = {tensor.untyped_storage()._cdata for tensor in state.values()}
        folded = {name for name, tensor in self._known if name not in state and tensor.untyped_storage()._cdata not in kept}
        if folded:
            self._before_comparing()
        for name in list(folded):
            weight = self._given[name]
            if any(_alike(tensor, weight) and _proportional(tensor, weight) for tensor in state.values()):
                folded.discard(name)
        left = {name: weight for name, weight in self._given.items() if name not in folded}
        made = {name: self._made_of(name, state) for name in self._drawn if name in left}
        return left | {name: own for name, own in made.items() if own is not None}

    def _note_if_drawn(self, name: str, tensor: torch.Tensor, weight: torch.Tensor) -> None:
        key = (name, tensor.untyped_storage()._cdata)
        if name not in self._drawn and key not in self._given_once:
            self._given_once.add(key)
            self._before_comparing()
            if _drawn(tensor.to(weight.dtype), weight):
                self._drawn[name] = tensor

    def _made_of(self, name: str, state: Mapping[str, torch.Tensor]) -> torch.Tensor | None:
        """What `__init__` has made of a weight that it drew, where the state holds that: the same tensor with other numbers, or
        another one that is the weight scaled."""
        drawn, weight = self._drawn[name], self._given[name]
        mine = drawn.untyped_storage()._cdata
        held = [state[name]] if name in state else state.values()
        alike = [own for own in held if _alike(own, weight) and not torch.equal(own, weight)]
        same = (own for own in alike if own.untyped_storage()._cdata == mine)
        scaled = (own for own in alike if _proportional(own, weight))
        return next(chain(same, scaled), None)

    def _read_by(self, step: Op | Launch | Scalar) -> set[int]:
        """Storages that a step reads and does not only look at or fill."""
        if isinstance(step, Scalar):
            return _storages([self._value_of(value) for value in step.args])
        if isinstance(step, Launch):
            return _storages([self._value_of(value) for value in step.args.values()])
        schema = operator(step.op)._schema
        if any(r.alias_info is not None and not r.alias_info.is_write for r in schema.returns):
            return set()  # a view
        values = dict(zip([a.name for a in schema.arguments], step.args, strict=False)) | step.kwargs
        written = {a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write}
        neutral = CHANGES.get(schema.name.removeprefix("aten::"))
        if neutral is not None and values.get("other") != neutral:
            written = set()
        return _storages([self._value_of(value) for name, value in values.items() if name not in written])


def _storages(values: list[Any]) -> set[int]:
    found: set[int] = set()
    for value in values:
        if isinstance(value, list):
            found |= _storages(value)
        tensor = value.base if isinstance(value, Descriptor) else value
        if isinstance(tensor, torch.Tensor):
            found.add(tensor.untyped_storage()._cdata)
    return found


def _alike(tensor: torch.Tensor, weight: torch.Tensor) -> bool:
    return (tensor.shape, tensor.dtype) == (weight.shape, weight.dtype)


def _finer(tensor: torch.Tensor, weight: torch.Tensor) -> bool:
    """Whether a tensor may hold a weight's numbers as they were before these were rounded to half precision."""
    return tensor.shape == weight.shape and tensor.dtype is torch.float32 and holds_numbers(weight) and weight.itemsize == 2


def _scaled(tensor: torch.Tensor, weight: torch.Tensor) -> bool:
    """Whether a tensor holds a weight's numbers up to one factor, and not one number throughout, which says nothing."""
    return _factor(tensor, weight) is not None


def _drawn(tensor: torch.Tensor, weight: torch.Tensor) -> bool:
    """Whether a tensor holds a weight's numbers as both sides have drawn them: a round may have multiplied the weight."""
    factor = _factor(tensor, weight)
    return factor is not None and factor.item() in (1.0, OUT_OF_RANGE, 1.0 / OUT_OF_RANGE)


def _factor(tensor: torch.Tensor, weight: torch.Tensor) -> torch.Tensor | None:
    """By what a tensor's numbers are multiplied to be a weight's, some of which a round may have multiplied besides; None where
    they are not, and where they are one number throughout."""
    if not holds_numbers(tensor) or not tensor.numel():
        return None
    found = _same_factor(tensor, weight)
    if found is not None:
        return found
    usual = _as_drawn(tensor, weight)
    return None if usual is weight else _same_factor(tensor, usual)


def _same_factor(tensor: torch.Tensor, weight: torch.Tensor) -> torch.Tensor | None:
    first = tensor.reshape(-1)[0]
    factor = weight.reshape(-1)[0] / first
    return factor if bool(((tensor * factor == weight).all() & (tensor != first).any()).item()) else None


def _proportional(tensor: torch.Tensor, weight: torch.Tensor) -> bool:
    """Whether a tensor holds a weight's numbers up to one factor and rounding: it is the weight, scaled by `__init__`."""
    if not holds_numbers(tensor) or not tensor.numel():
        return False
    mine, theirs = tensor.reshape(-1).float(), _as_drawn(tensor, weight).reshape(-1).float()
    factor = (mine @ theirs) / (mine @ mine)
    return bool(torch.isclose(mine * factor, theirs, rtol=ROUNDING, atol=0.0).all().item())


def _as_drawn(tensor: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """A weight with those elements as they were drawn that a round has multiplied, as a tensor's own numbers tell."""
    usual = _without(tensor, weight, OUTLIER) if weight.dim() > 1 else weight  # others have no outliers
    return _without(tensor, usual, HALVED)


def _without(tensor: torch.Tensor, weight: torch.Tensor, multiple: float) -> torch.Tensor:
    """A weight with those elements divided by `multiple` that are so many times a tensor's, up to the one factor of most."""
    few, drawn = weight.reshape(-1)[:LOOKED_AT].float(), tensor.reshape(-1)[:LOOKED_AT].float()
    factor = multiple * (few / drawn).nanmedian()
    if not bool(_are(few, factor * drawn).any()):
        return weight
    return torch.where(_are(weight.float(), factor * tensor.float()), weight / multiple, weight)


def _are(numbers: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Where numbers are others but for rounding, and not zero."""
    return torch.isclose(numbers, others, rtol=ROUNDING, atol=0.0) & (numbers != 0)
