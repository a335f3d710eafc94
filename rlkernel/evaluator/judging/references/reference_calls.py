"""Calls of a reference, as the judges of both paths make them: seeds, inputs, weights, and the same in float64.

What a problem's author draws is often special: parameters of ones and zeros. Rounds at other weights judge the function itself,
and so do rounds at scaled or shifted inputs (`inputs/stress.py`).
"""

from __future__ import annotations

import copy
import itertools
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import nn

from rlkernel.evaluator.judging.references.widening import WAYS, still_rounds, usual_dtypes
from rlkernel.evaluator.messages.judgement import Balance
from rlkernel.evaluator.program.codes import holds_numbers, valued, widened
from rlkernel.evaluator.program.replaced import holding
from rlkernel.evaluator.program.tensors import flatten, laid_as, overwrite
from rlkernel.records import is_named_tuple
from rlkernel.seeds import seed_generators

MAX_CONSTANT = 1e3
"""Magnitude up to which the value of a constant parameter is changed; larger ones are masks."""
LITTLE = 2.0**-4
"""Magnitude below which a trained constant gets a value that is not: what is multiplied by 1e-6, the scale of a residual branch,
lies within every bound otherwise."""

REFUSALS = (RuntimeError, ValueError, TypeError, AssertionError, IndexError)
"""What a reference raises that does not run in float64."""


def draw_seed() -> int:
    """From the operating system, after the candidate was traced."""
    return secrets.randbits(31)


def tensors_of(value: Any) -> list[torch.Tensor]:
    """The tensors in a structure, in order."""
    found: list[torch.Tensor] = []
    flatten(value, found)
    return found


def kinds_of(outputs: Sequence[torch.Tensor]) -> list[tuple[torch.Size, bool]]:
    """The shape of each tensor, and whether all of it is finite."""
    return [(tensor.shape, bool(torch.isfinite(valued(tensor)).all())) for tensor in outputs]


def mapped(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """A structure with its tensors replaced, in order."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: mapped(item, change) for key, item in value.items()}
    if is_named_tuple(value):
        return type(value)(*[mapped(item, change) for item in value])
    return [mapped(item, change) for item in value] if isinstance(value, (list, tuple)) else value


def mapped_at(inputs: list[Any], place: int, change: Callable[[torch.Tensor], torch.Tensor]) -> list[Any]:
    """The arguments of forward with one of their tensors replaced, that at `place` among these.

    >>> mapped_at([torch.zeros(1), {"b": [torch.ones(1)]}], 1, lambda tensor: tensor + 1)
    [tensor([0.]), {'b': [tensor([2.])]}]
    """
    places = itertools.count()
    return [mapped(value, lambda tensor: change(tensor) if next(places) == place else tensor) for value in inputs]


def constants(model: nn.Module, fixed: Sequence[str] = ()) -> dict[str, torch.Tensor]:
    """The parameters and buffers that hold one value throughout, such as ones and zeros, and the trainable parameters that hold
    two, such as those of an identity matrix, or the same in each of their rows, as no draw does: with copies of what they hold.
    Names that match a pattern of `fixed`, the reference's own `FIXED`, are left out. A GPU is waited for."""
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    floats = {name: t for name, t in state_of(model).items() if holds_numbers(t) and t.numel()}
    meant = {name for name in floats if any(fnmatchcase(name, pattern) for pattern in fixed)}
    alike = {name for name, t in floats.items() if name in trained and repeats_rows(t)}
    return {
        name: t.clone()
        for name, t in floats.items()
        if name not in meant and (name in alike or is_constant(t, two=name in trained))
    }


def is_constant(tensor: torch.Tensor, *, two: bool) -> bool:
    """Whether a tensor holds one value, or `two` of them where it has more elements than that; none of them is a mask's."""
    low, high = tensor.aminmax()
    if not max(abs(float(low)), abs(float(high))) <= MAX_CONSTANT:
        return False
    return bool(low == high) or (two and tensor.numel() > 2 and bool(((tensor == low) | (tensor == high)).all()))


def holds_truths(tensor: torch.Tensor) -> bool:
    """Whether an input holds truth values as floating-point numbers: zeros and ones, both of them, and nothing else. A GPU is
    waited for."""
    if not holds_numbers(tensor) or tensor.numel() < 2:
        return False
    low, high = torch.stack(tensor.aminmax()).tolist()  # few inputs come further, and a card may hold no masks of a large one
    return (low, high) == (0.0, 1.0) and bool(((tensor == 0) | (tensor == 1)).all())


def repeats_rows(tensor: torch.Tensor) -> bool:
    """Whether all slices of a tensor along one of its axes are alike, as those of a row that was repeated for each channel.

    >>> repeats_rows(torch.arange(4.0).repeat(3, 1)), repeats_rows(torch.eye(3)), repeats_rows(torch.arange(4.0)[None])
    (True, False, False)
    """
    if tensor.dim() < 2 or not float(tensor.abs().max()) <= MAX_CONSTANT:
        return False
    axes = [axis for axis, size in enumerate(tensor.shape) if 1 < size < tensor.numel()]
    likely = [axis for axis in axes if torch.equal(tensor.select(axis, 0), tensor.select(axis, -1))]
    return any(bool((tensor == tensor.narrow(axis, 0, 1)).all()) for axis in likely)


def perturb(model: nn.Module, seed: int, names: Iterable[str]) -> None:
    """Give the `constants` of these names other values, drawn from `seed`, without waiting for a GPU: half to three halves of the
    constant; between -1/2 and 1/2 in place of zero; between 1/4 and 3/4, with its sign, in place of a `LITTLE` one that is
    trained. Running variances stay positive."""
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    generators: dict[torch.device, torch.Generator] = {}
    state = state_of(model)
    with torch.no_grad():
        for name in names:
            tensor = state[name]
            generator = generators.setdefault(tensor.device, torch.Generator(tensor.device).manual_seed(seed))
            drawn = torch.rand(tensor.shape, generator=generator, device=tensor.device) - 0.5
            base = torch.where(tensor.abs() < LITTLE, 0.5 * tensor.sign(), tensor) if name in trained else tensor
            overwrite(tensor, torch.where(tensor == 0, drawn, base * (1.0 + drawn)))


def balanced(inputs: list[Any], balance: Balance | None) -> list[Any]:
    """The arguments of forward, times what a balance says."""
    factors = {} if balance is None else balance.inputs
    return [x * factors[i] if i in factors else x for i, x in enumerate(inputs)]


def laid_as_drawn(inputs: list[Any], drawn: list[Any]) -> list[Any]:
    """The arguments of forward after changes, whose tensors lie in memory as those that were drawn."""
    before, places = tensors_of(drawn), itertools.count()

    def laid(tensor: torch.Tensor) -> torch.Tensor:
        place = next(places)
        return laid_as(tensor, before[place]) if place < len(before) else tensor

    return [mapped(value, laid) for value in inputs]


def balance_state(model: nn.Module, balance: Balance) -> None:
    """Multiply parameters and buffers by what a balance says, in place."""
    state = state_of(model)
    with torch.no_grad():
        for name, factor in balance.state.items():
            state[name].mul_(factor)


def held_as(own: Mapping[str, torch.Tensor], given: Mapping[str, torch.Tensor]) -> dict[str, str]:
    """What a candidate calls the reference's state: the same name where shape and dtype are the same; under names that only one
    side has by shape and dtype in order, where both have equally many. Example: `bn.running_mean` is held as `running_mean`."""
    found = {name: name for name, tensor in own.items() if name in given and _kind(tensor) == _kind(given[name])}
    rest = [[(name, t) for name, t in side.items() if name not in other] for side, other in ((own, given), (given, own))]
    for kind in {_kind(tensor) for _, tensor in rest[0]}:
        mine, theirs = ([name for name, t in side if _kind(t) == kind] for side in rest)
        if len(mine) == len(theirs):
            found |= dict(zip(theirs, mine, strict=True))
    return found


def hand_over(own: Mapping[str, torch.Tensor], given: Mapping[str, torch.Tensor]) -> dict[str, str]:
    """Write the reference's state over a candidate's. Returns what the candidate calls it, see `held_as`."""
    names = held_as(own, given)
    for theirs, mine in names.items():
        overwrite(own[mine], given[theirs])
    return names


def as_reference(state: Mapping[str, torch.Tensor], names: Mapping[str, str]) -> dict[str, torch.Tensor]:
    """A candidate's state by its own names, and by the reference's that `held_as` knows. Its own go first: forward may make state
    under a name of the reference's that `__init__` has not."""
    return {theirs: state[mine] for theirs, mine in names.items() if mine in state} | dict(state)


def _kind(tensor: torch.Tensor) -> tuple[tuple[int, ...], torch.dtype]:
    return tuple(tensor.shape), tensor.dtype


def call(model: nn.Module, inputs: list[Any], seed: int) -> Any:
    seed_generators(seed)
    with torch.no_grad(), holding(model):
        return model(*inputs)


def exact_outputs(model: nn.Module, inputs: list[Any], seed: int) -> list[torch.Tensor] | None:
    """In float64, on copies of `inputs`; `model` is turned into it. None where it does not run there and is its own measure."""
    found = _exact_call(model, inputs, seed)
    return None if found is None else found[0]


def _exact_call(model: nn.Module, inputs: list[Any], seed: int) -> tuple[list[torch.Tensor], list[torch.Tensor]] | None:
    """The outputs of `exact_outputs`, and the arguments after the call."""
    kinds = {name: tensor.dtype for name, tensor in state_of(model).items()}
    before, after = _buffers(model), dict[str, torch.Tensor]()
    widened(model)
    rounded = None
    for around in WAYS:
        _put_back(model, before)  # as they were before a call that has failed half-way
        wide = mapped(inputs, doubled)
        usual = usual_dtypes(state_of(model), kinds, tensors_of(wide), [tensor.dtype for tensor in tensors_of(inputs)])
        try:
            with around(usual):
                found = tensors_of(call(model, wide, seed)), tensors_of(wide)
        except REFUSALS:
            continue
        if not still_rounds(found[0]):
            return found
        if rounded is None:
            rounded, after = found, _buffers(model)
    _put_back(model, after)
    return rounded


def _buffers(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in model.named_buffers()}


def _put_back(model: nn.Module, buffers: Mapping[str, torch.Tensor]) -> None:
    with torch.no_grad():
        for name, tensor in model.named_buffers():
            if name in buffers:
                tensor.copy_(buffers[name])


def exact_of_copy(model: nn.Module, inputs: list[Any], seed: int, names: Sequence[str] = ()) -> list[torch.Tensor] | None:
    """The same of a copy of `model`, which is left as it is. Behind the outputs stand the parameters and buffers of these names,
    as the call leaves them."""
    return exact_with_state(copy.deepcopy(model), inputs, seed, names)


def exact_with_state(
    model: nn.Module, inputs: list[Any], seed: int, names: Sequence[str], places: Sequence[int] = ()
) -> list[torch.Tensor] | None:
    """The outputs in float64 as `exact_outputs` gives them, and behind them the parameters and buffers of these names, and the
    arguments at these places, as the call leaves them."""
    found = _exact_call(model, inputs, seed)
    if found is None:
        return None
    return [*found[0], *(state_of(model)[name] for name in names), *(found[1][place] for place in places)]


def doubled(tensor: torch.Tensor) -> torch.Tensor:
    """A copy in float64; of anything but floating-point numbers, in its own dtype."""
    return tensor.to(torch.float64 if holds_numbers(tensor) else tensor.dtype, copy=True)


def counts_as_state(name: str, tensor: torch.Tensor) -> bool:
    """Whether a change of this parameter or buffer must be the candidate's, too. PyTorch's own counter of batches need not:
    without `momentum=None` nothing reads it, and kernels that replace a module leave it alone."""
    return tensor.is_floating_point() or not name.endswith("num_batches_tracked")


def state_of(model: nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers by name, in place."""
    return {name: tensor.detach() for name, tensor in [*model.named_parameters(), *model.named_buffers()]}
