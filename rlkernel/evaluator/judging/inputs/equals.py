"""Numbers that differ in every draw: indices that never meet, and values of which one is the largest.

Of `out.index_add(0, rows, x)` with other rows each time, whoever stores in place of adding would be right, and of the argmax of
normal numbers, or of what is made of each of them alone, whoever takes the last of equal ones, where PyTorch names the first;
of the eight largest, whoever drops all that equal the largest. So the reference is watched for operators that add up what
meets, for those that say which of equal numbers they take or compare what is made of one input, and for those that leave it
open, where nothing is made of which they take. Some indices then repeat their neighbours, and numbers are limited to those
between their eighths, in a round of its own. A permutation of all places stays one, because that is what it is; and nothing is
repeated where an operator stores without adding, which says nothing of indices that meet. Source: ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from rlkernel.evaluator.judging.inputs.bearing import Origins, is_same, usual_call
from rlkernel.evaluator.judging.inputs.emptied import emptied, may_be_empty
from rlkernel.evaluator.judging.references.plan import SeededReference
from rlkernel.evaluator.judging.references.reference_calls import mapped_at, tensors_of
from rlkernel.evaluator.messages.judgement import Emptied, Repeated
from rlkernel.evaluator.program.codes import holds_numbers
from rlkernel.evaluator.program.operators import COMPARISONS, base_name, by_name, operators_of
from rlkernel.evaluator.program.schema import Program

ADDS = {"index_add", "index_reduce", "scatter_add", "scatter_reduce"}
STORES = {"index_copy", "index_fill", "index_put", "scatter"}
FIRST = {"argmax", "argmin", "max", "min", "sort"}
"""Operators that give the first of equal numbers, `sort` where it is stable."""
SAME = {
    "cummax", "cummin", "max_pool2d_with_indices", "max_pool3d_with_indices", "adaptive_max_pool2d", "adaptive_max_pool3d",
}  # fmt: skip
"""Operators that always name the same one of equal numbers: the first of a window, and the last of those before."""
OPEN = {"kthvalue", "median", "sort", "topk"}
"""Operators that leave open which of equal numbers they take; `sort` where it is not stable."""
WHOLE = (torch.int32, torch.int64)
EIGHTHS = (1, 7)
SHARE = 0.25
"""The share of indices that repeat a neighbour; one at least."""
FEW = 1.0 / 16
"""The share of indices that meet in a draw up to which more of them do in a round of its own."""
MOST_DRAWS = 16
"""Draws of which one must hold indices that meet, where a reference stores by them: else they are different on purpose, as the
experts of a token are, and who counts them may be right."""
MEET = "indices that meet"
TIES = "equal numbers among its inputs"
"""What stands behind a miss in such rounds."""


def repeated(inputs: list[Any], what: Repeated, seed: int) -> list[Any]:
    """The arguments of forward with an input some of whose numbers repeat others, drawn from `seed`."""

    def change(tensor: torch.Tensor) -> torch.Tensor:
        made = limited(tensor) if what.axis is None else meeting(tensor, what.axis, seed)
        return torch.empty_like(tensor).copy_(made)

    return mapped_at(inputs, what.place, change)


def limited(tensor: torch.Tensor) -> torch.Tensor:
    """The numbers, none below the first or above the last eighth of them."""
    ordered = tensor.flatten().sort().values
    low, high = (ordered[eighth * (ordered.numel() - 1) // 8] for eighth in EIGHTHS)
    return tensor.clamp(low, high)


def meeting(tensor: torch.Tensor, axis: int, seed: int) -> torch.Tensor:
    """The indices, some of which are those of their neighbours along an axis."""
    generator = torch.Generator(tensor.device).manual_seed(seed)
    drawn = torch.rand(tensor.shape, generator=generator, device=tensor.device)
    drawn.select(axis, 0).fill_(1.0)  # whose neighbour is the last: what is in order stays so
    here = drawn <= max(SHARE, float(drawn.min()))
    return torch.where(here, tensor.roll(1, axis), tensor)


class _Watching(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes of which inputs an operator adds up what meets, which inputs it stores by, of which it takes the first of equal
    numbers, and of which any."""

    def __init__(self, inputs: Sequence[torch.Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._given = inputs
        self._origins = Origins(inputs)
        self.added = dict[int, int]()
        """Place of the indices -> the axis along which they meet."""
        self.stored = set[int]()
        self.axes = dict[int, int]()
        """Place of the indices of one such operator alone -> the axis along which they would meet."""
        self.holds = True
        """Whether all that is stored is there afterwards, as it is where indices meet and the same is stored for each of them."""
        self.first = set[int]()
        """Places of inputs of which an operator tells equal numbers apart, or from others."""
        self._same: list[tuple[int, StorageWeakRef]] = []
        """Places of inputs of which an operator always names the same one of equal numbers, and what names it."""
        self._open: list[tuple[int, StorageWeakRef]] = []
        """Places of inputs of which an operator takes any of equal numbers, and what says which it took."""
        self._used = set[int]()
        """Such places where something was made of that, or it was given back."""

    @property
    def valued(self) -> set[int]:
        """Places of inputs that may hold equal numbers: none of which any may be taken, and something is made of which."""
        return (self.first | {place for place, _ in self._open}) - self._used

    def __exit__(self, *error: Any) -> None:
        self._used |= {place for place, taken in self._open if not taken.expired()}  # type: ignore[no-untyped-call]
        self.first |= {place for place, named in self._same if not named.expired()}  # type: ignore[no-untyped-call]
        super().__exit__(*error)  # type: ignore[no-untyped-call]

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        name = base_name(str(func))
        given = by_name(func, args, kwargs)
        if name in ADDS | STORES | FIRST | COMPARISONS:
            self._look(name, given)
        if self._open or self._same:
            storages = {one.untyped_storage()._cdata for one in tensors_of(list(given.values()))}
            self._used |= {place for place, taken in self._open if taken.cdata in storages}
            self.first |= {place for place, named in self._same if named.cdata in storages}
        made = func(*args, **(kwargs or {}))
        if name in STORES and not given.get("accumulate"):
            self.holds &= _holds_what_is_stored(name, given, made)
        self._origins.note(func, [*args, *(kwargs or {}).values()], made)
        if name in OPEN | SAME and not given.get("stable") and isinstance(made, tuple):
            place = self._origins.of(given["self"])
            if place is not None:
                found = self._open if name in OPEN else self._same
                found.append((place, StorageWeakRef(made[1].untyped_storage())))  # type: ignore[no-untyped-call]
        return made

    def _look(self, name: str, given: dict[str, Any]) -> None:
        if name in FIRST:
            place = self._origins.of(given["self"])
            if place is not None and (given.get("stable") if name == "sort" else name.startswith("arg") or "dim" in given):
                self.first.add(place)
            return
        if name in COMPARISONS:
            one, other = given["self"], given["other"]
            if isinstance(other, torch.Tensor) and not is_same(one, other):
                places = {self._origins.of(one), self._origins.of(other)}
                self.first |= {place for place in places if place is not None and len(places) == 1}
            return
        adds = name in ADDS or bool(given.get("accumulate"))
        indices = given["indices"] if name == "index_put" else [given["index"]]
        for index in indices:
            place = None if index is None else self._origins.itself(index)
            if place is None:
                continue
            along = given["dim"] if name.startswith("scatter") else 0
            axis = _axis_of(self._given[place], index, along) if len(indices) == 1 else None
            if axis is not None:
                (self.added if adds else self.axes)[place] = axis
            if axis is None or not adds:
                self.stored.add(place)


def _holds_what_is_stored(name: str, given: dict[str, Any], made: torch.Tensor) -> bool:
    """Whether what an operator stores by indices is there afterwards, for each of them."""
    stored = given.get("src", given.get("source", given.get("values")))
    if not isinstance(stored, torch.Tensor):
        return True  # one number
    if name == "index_put":
        return bool((made[tuple(slice(None) if one is None else one for one in given["indices"])] == stored).all())
    index = given["index"]
    if name == "index_copy":
        return torch.equal(made.index_select(given["dim"], index), stored)
    return torch.equal(made.gather(given["dim"], index), stored[tuple(slice(size) for size in index.shape)])


def _axis_of(given: torch.Tensor, index: torch.Tensor, along: int) -> int | None:
    """The axis of an input that an index has along one of its own; None where the index is not all of that input, each number
    once or, as `expand` gives it, alike in each place of another axis.

    >>> rows = torch.arange(16)
    >>> _axis_of(rows, rows.view(1, -1).expand(4, -1), 1), _axis_of(rows.view(2, 8), rows.view(2, 8)[0], 0)
    (0, None)
    """
    if not index.dim() or index.data_ptr() != given.data_ptr():
        return None
    shown = math.prod(size for size, stride in zip(index.shape, index.stride(), strict=True) if stride)
    size, stride = index.shape[along], index.stride(along)
    axes = [axis for axis in range(given.dim()) if (given.shape[axis], given.stride(axis)) == (size, stride)]
    return axes[0] if axes and shown == given.numel() else None


def may_repeat(program: Program) -> bool:
    """Whether a reference calls an operator that is watched."""
    return bool(operators_of(program) & (ADDS | STORES | FIRST | SAME | COMPARISONS | OPEN))


def repeats_of(reference: SeededReference) -> tuple[Repeated | Emptied, ...]:
    """The inputs that may repeat some of their numbers, and never do, and the indices of which some may never be named. Whatever
    the reference raises at its own inputs is raised."""
    model, given, again = reference.model(0), *(tensors_of(reference.inputs(seed)) for seed in (0, 1))
    inputs = reference.inputs(0)
    usual = usual_call(model, inputs, watching := _Watching(tensors_of(inputs)))
    either = {place: axis for place, axis in watching.added.items() if place not in watching.stored} | watching.axes
    distinct = [
        Repeated(place, axis)
        for place, axis in sorted(either.items())
        if all(_hardly_meet(tensors[place], axis) for tensors in (given, again))
        and (place not in watching.axes or _meet_by_chance(reference, place, axis))
    ]
    valued = [Repeated(place, None) for place in sorted(watching.valued) if holds_numbers(given[place])]

    meeting = sorted(watching.added.keys() - watching.stored - {one.place for one in distinct})
    sparse = [Emptied(place) for place in meeting if all(may_be_empty(tensors[place], tensors) for tensors in (given, again))]

    def bears(one: Repeated | Emptied) -> bool:
        def changed() -> list[Any]:
            inputs = reference.inputs(0)
            return emptied(inputs, one, 0) if isinstance(one, Emptied) else repeated(inputs, one, 0)

        storing = _Watching(()) if one.place in watching.axes else None
        return usual.borne(reference.model(0), changed, storing) and (storing is None or storing.holds)

    return tuple(filter(bears, (*distinct, *valued, *sparse)))


def _hardly_meet(tensor: torch.Tensor, axis: int) -> bool:
    """Whether few indices meet along an axis, and they are not simply all that there are: of a dozen among hundreds two are equal
    in every third draw, and whoever is wrong there would be right by chance."""
    if tensor.dtype not in WHOLE or not tensor.dim() or tensor.shape[axis] < 2:
        return False
    places = torch.arange(tensor.shape[axis], device=tensor.device).view([-1] + [1] * (tensor.dim() - 1 - axis % tensor.dim()))
    ordered = tensor.sort(axis).values
    return _meeting(ordered, axis) <= FEW * tensor.numel() and not bool((ordered == places).all())


def _meet_by_chance(reference: SeededReference, place: int, axis: int) -> bool:
    """Whether indices meet along an axis in one of some draws."""
    draws = (tensors_of(reference.inputs(seed))[place] for seed in range(MOST_DRAWS))
    return any(_meeting(tensor.sort(axis).values, axis) for tensor in draws)


def _meeting(ordered: torch.Tensor, axis: int) -> int:
    """How many indices, sorted along an axis, are equal to the one before."""
    return int((ordered.diff(dim=axis) == 0).sum())
