"""The reference in float64 at full shape: whole where the card's memory allows that, else along the batch, else not at all. And
what it errs by, measured so.

Along the batch is right only for a reference that treats each element of the batch alike, whatever the others are. So each chunk
is also computed in the reference's own dtype, and must be what the whole batch gave there.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import _disable_current_modes

from rlkernel.evaluator.judging.errors.error_passes import ByTorch, Measure
from rlkernel.evaluator.judging.errors.noise import confirmed, moved_call
from rlkernel.evaluator.judging.errors.own_error import Cores, OwnError, casts, errors, other_choices, own_error
from rlkernel.evaluator.judging.errors.tensor_cores import cores_of
from rlkernel.evaluator.judging.errors.tolerance import FLOOR
from rlkernel.evaluator.judging.inputs.nudging import nudging
from rlkernel.evaluator.judging.inputs.shown import held, meant
from rlkernel.evaluator.judging.references.flags import judging
from rlkernel.evaluator.judging.references.reference_calls import REFUSALS, call, doubled, mapped, state_of, tensors_of
from rlkernel.evaluator.judging.references.widening import WAYS, Way, still_rounds, usual_dtypes
from rlkernel.evaluator.messages.judgement import Planting
from rlkernel.evaluator.program.codes import equal_or_wrong, holds_numbers, valued, widened
from rlkernel.types import Precision

CHUNKS = (2, 4, 8, 16, 32)
"""Into how many parts a batch is cut, one number after the other until the parts fit."""

Draw = Callable[[], list[Any]]
"""Gives forward's arguments, the same ones each time, in memory of their own."""
Change = Callable[[torch.Tensor], torch.Tensor]
"""Gives the tensors among the arguments in float64, one after the other."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What one call of the reference misses by."""

    exact: Sequence[torch.Tensor]
    """What float64 gives, or what the call gave where the reference does not run in float64."""
    errors: list[OwnError]
    cores: bool
    """Whether a candidate may compute products of the reference in tf32."""
    choices: Mapping[int, tuple[torch.Tensor, ...]]
    """What tensor cores make of each output of which they make something else, by its place."""


def measured(
    model: nn.Module,
    draw: Draw,
    seed: int,
    found: Sequence[torch.Tensor],
    names: Sequence[str],
    precision: Precision,
    *,
    shown: Planting | None = None,
    gaps: bool = True,
    passes: Measure = ByTorch,
    ways: Sequence[Way] = WAYS,
) -> Measured:
    """What a call of the reference misses by that gave `found`: its outputs, and behind them its parameters and buffers of these
    `names`. `model` is as it was before that call, and stays so. `shown`: what was done to the inputs, so that they show
    something; `gaps`: whether values of an output may count as huge; `passes`: what reads the tensors;
    `ways`: in what the reference is called in float64."""
    exactly = partial(exact_outputs, model, draw, seed, found, names=names, ways=ways)
    near = partial(nudging, meant=meant(shown), held=held(shown))
    with judging(precision):
        rounded, exact = cores_of(exactly, found, precision)
        exact = exact or exactly() or list(found)
        moved = exactly(near) or exact
    cores: Sequence[Cores | None] = rounded or [None] * len(found)
    rows, outputs = list(zip(found, exact, moved, cores, strict=True)), len(found) - len(names)
    own = [own_error(f, e, m, c, gaps=gaps, passes=passes) for f, e, m, c in rows[:outputs]]
    if any(casts(f, state_of(model).values()) for f in found[:outputs]):
        given = [*tensors_of(draw()), *state_of(model).values()]
        own = [replace(error, cast=casts(f, given)) for f, error in zip(found, own, strict=False)]
    own += [own_error(f, e, None, c, passes=passes) for f, e, _, c in rows[outputs:]]
    with judging(precision):
        own = confirmed(own, found, lambda: moved_call(model, state_of(model), draw(), seed, names))
    return Measured(exact, own, rounded is not None, other_choices(own[:outputs], cores))


def exact_outputs(
    model: nn.Module, draw: Draw, seed: int, found: Sequence[torch.Tensor], changing: Callable[[], Change] = lambda: doubled, *,
    names: Sequence[str] = (), ways: Sequence[Way] = WAYS,
) -> list[torch.Tensor] | None:  # fmt: skip
    """The outputs in float64. None where the reference does not run in float64. `changing` gives what makes float64 of the
    arguments of one call.

    Behind the outputs stand the parameters and buffers of these `names` as the call leaves them, and so in `found`, what the call
    gave in its own dtype. Where forward runs in chunks, these are their own measure. `model` is as it was before that call, and
    stays so. At its most, this holds the inputs and outputs once in float64 beside what the caller holds, and what forward makes
    between.
    """
    rounded, outputs = None, len(found) - len(names)
    for way in ways:
        try:
            made = _whole(model, draw, seed, changing(), names, way)
        except torch.OutOfMemoryError:
            if way is not WAYS[0]:
                return rounded
            break  # its frames hold tensors until here
        except REFUSALS:
            continue
        if not still_rounds(made[:outputs]):
            return made
        rounded = rounded or made
    else:
        return rounded
    for count in CHUNKS:
        torch.cuda.empty_cache()
        try:
            parts = _along_the_batch(model, draw, seed, found[:outputs], changing, count)
            return None if parts is None else [*parts, *found[outputs:]]
        except torch.OutOfMemoryError:
            continue
        except REFUSALS:
            return None
    return None


def _whole(model: nn.Module, draw: Draw, seed: int, change: Change, names: Sequence[str], way: Way) -> list[torch.Tensor]:
    """The same at once, in one way. Raises what the reference raises there."""
    kinds = {name: tensor.dtype for name, tensor in state_of(model).items()}
    wide_model = widened(copy.deepcopy(model))
    given, wide, dtypes = draw(), [], []
    while given:  # one at a time: the inputs are never there twice
        argument = given.pop(0)
        dtypes += [tensor.dtype for tensor in tensors_of(argument)]
        wide.append(mapped(argument, change))
        del argument
    with way(usual_dtypes(state_of(wide_model), kinds, tensors_of(wide), dtypes)):
        outputs = tensors_of(call(wide_model, wide, seed))
    return [*outputs, *(state_of(wide_model)[name] for name in names)]


def _along_the_batch(
    model: nn.Module,
    draw: Draw,
    seed: int,
    found: Sequence[torch.Tensor],
    changing: Callable[[], Change],
    count: int,
) -> list[torch.Tensor] | None:
    """The same in `count` chunks of the first dimension; None where that is not the same function."""
    given = draw()
    sizes = [x.shape[0] for x in given if isinstance(x, torch.Tensor) and x.dim() > 0]
    batch = sizes[0] if sizes else 0
    if batch < 2 or any(f.dim() == 0 or f.shape[0] != batch for f in found):
        return None
    own_model, wide_model = copy.deepcopy(model), widened(copy.deepcopy(model))
    made = [torch.empty(f.shape, dtype=torch.float64 if holds_numbers(f) else f.dtype, device=f.device) for f in found]
    rows = -(-batch // count)
    for start in range(0, batch, rows):
        part = [_rows(x, batch, start, rows) for x in given]
        with _disable_current_modes():  # in its own dtype nothing is rounded, see `judging.errors.tensor_cores`
            again = tensors_of(call(own_model, mapped(part, torch.clone), seed))
        if not all(_alike(a, f[start : start + rows]) for a, f in zip(again, found, strict=True)):
            return None
        del again
        for whole, one in zip(made, tensors_of(call(wide_model, mapped(part, changing()), seed)), strict=True):
            whole[start : start + rows].copy_(one)
    return made


def _rows(value: Any, batch: int, start: int, rows: int) -> Any:
    batched = isinstance(value, torch.Tensor) and value.dim() > 0 and value.shape[0] == batch
    return value[start : start + rows] if batched else value


def _alike(again: torch.Tensor, found: torch.Tensor) -> bool:
    """Whether a chunk is what the whole batch gave there, up to rounding."""
    if again.shape != found.shape:
        return False
    if equal_or_wrong(found.dtype):
        return torch.equal(valued(again), valued(found))
    return not found.numel() or errors(again, found)[0] <= FLOOR.get(found.dtype, FLOOR[torch.float32])
