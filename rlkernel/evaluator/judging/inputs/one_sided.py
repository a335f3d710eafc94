"""Numbers that bfloat16 rounds to one side, and tf32 holds.

Of a mean over a million products whoever takes bfloat16 operands is right: their roundings go up as often as down, and the mean
of all of them is next to nothing. Where the three bits behind bfloat16's last one are 011, and all others zeros, each number
becomes smaller, by 0.1 to 0.3 % of its size, whether it is rounded or cut off, and so does what is made of all of them. tf32 has
these three bits, so that it rounds nothing. A reference is called on such inputs and weights, and on what bfloat16 makes of them:
where a result differs there alone, candidates are judged there. Whole numbers stay, as those of masks and counts. Source: ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from rlkernel.evaluator.judging.errors.tolerance import FLOOR
from rlkernel.evaluator.judging.inputs.bearing import usual_call
from rlkernel.evaluator.judging.references.outliers import weights
from rlkernel.evaluator.judging.references.plan import SeededReference
from rlkernel.evaluator.judging.references.reference_calls import call, mapped, state_of, tensors_of
from rlkernel.evaluator.messages.judgement import OneSided
from rlkernel.evaluator.program.tensors import overwrite

BFLOAT16 = -1 << 16
"""The bits of a float32 that bfloat16 has."""
BEHIND = 0b011 << 13
"""The three bits behind these, of which bfloat16 makes nothing."""
HIDDEN = 2.0
"""How many floors a result moves by at most where bfloat16's roundings are not told."""
SHOWN = 4.0
"""The same at least where they are."""
MOST_ELEMENTS = 1 << 22
"""The most elements that all inputs have together: a reference is called up to eight times."""
MOST_ON_GPU = 1 << 28
"""The same on a GPU."""
NOTE = "numbers that bfloat16 rounds to one side"
"""Stands behind a miss in such a round."""


def one_sided(tensor: torch.Tensor) -> torch.Tensor:
    """The numbers of a tensor of float32 with such bits at their ends; whole ones, and what is no number, as they are."""
    if tensor.dtype is not torch.float32:
        return tensor
    made = tensor.contiguous().view(torch.int32).bitwise_and(BFLOAT16).bitwise_or(BEHIND).view(torch.float32)
    drawn = torch.isfinite(tensor) & (tensor != tensor.round())
    return torch.empty_like(tensor).copy_(torch.where(drawn, made, tensor))


def with_one_sided(inputs: list[Any]) -> list[Any]:
    """The arguments of forward, of such numbers."""
    return _mapped(inputs, (one_sided,))


def of_bfloat16(tensor: torch.Tensor) -> torch.Tensor:
    """What bfloat16 makes of the numbers of a tensor of float32."""
    return tensor.bfloat16().float() if tensor.dtype is torch.float32 else tensor


def side_weights(model: nn.Module, fixed: Sequence[str]) -> nn.Module:
    """The module, whose drawn weights are such numbers now."""
    return _with_weights(model, fixed, (one_sided,))


def one_sided_of(reference: SeededReference) -> tuple[OneSided, ...]:
    """Whether nothing but such numbers tells bfloat16 from float32 in some result. Whatever the reference raises at its own
    inputs is raised."""
    given = tensors_of(reference.inputs(0))
    of_float32 = [tensor for tensor in given if tensor.dtype is torch.float32]
    if not of_float32 or sum(tensor.numel() for tensor in given) > _most(of_float32[0].device):
        return ()
    usual = usual_call(reference.model(0), reference.inputs(0))

    def results(*ways: Any) -> list[torch.Tensor] | None:
        model = _with_weights(reference.model(0), reference.fixed, ways)
        inputs = _mapped(reference.inputs(0), ways)
        if not usual.borne(model, _mapped(inputs, (torch.clone,))):
            return None
        model = _with_weights(reference.model(0), reference.fixed, ways)
        return [tensor.clone() for tensor in tensors_of(call(model, inputs, usual.seed))]

    hidden = [moved <= HIDDEN for moved in _moved(results(), results(of_bfloat16))]
    if not any(hidden):
        return ()
    shown = [moved > SHOWN for moved in _moved(results(one_sided), results(one_sided, of_bfloat16))]
    return (OneSided(),) if any(map(all, zip(hidden, shown, strict=False))) else ()


def _most(device: torch.device) -> int:
    return MOST_ELEMENTS if device.type == "cpu" else MOST_ON_GPU


def _with_weights(model: nn.Module, fixed: Sequence[str], ways: Sequence[Any]) -> nn.Module:
    state = state_of(model)
    with torch.no_grad():
        for name in weights(model, fixed) if ways else ():
            made = state[name]
            for way in ways:
                made = way(made)
            overwrite(state[name], made)
    return model


def _mapped(inputs: list[Any], ways: Sequence[Any]) -> list[Any]:
    for way in ways:
        inputs = mapped(inputs, way)
    return inputs


def _moved(one: Sequence[torch.Tensor] | None, other: Sequence[torch.Tensor] | None) -> list[float]:
    """How many floors of float32 each result of that dtype differs by; nothing of results that there are not."""
    pairs = zip(one or (), other or (), strict=False)
    wide = [(a.double(), b.double()) for a, b in pairs if a.dtype is torch.float32]
    sizes = [(float(torch.linalg.vector_norm(a - b)), float(torch.linalg.vector_norm(a))) for a, b in wide]
    return [apart / size / FLOOR[torch.float32] if size > 0 else 0.0 for apart, size in sizes]
