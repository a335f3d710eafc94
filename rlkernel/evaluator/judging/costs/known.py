"""The whole numbers that a forward is given at full shape: lengths of sequences, bounds of segments, tables of pages.

A kernel may loop as far as such a number says. What that costs is known if the number is, so that few and small tensors of whole
numbers are drawn at full shape, too, once per problem and as the problem's author draws them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch

from rlkernel.evaluator.messages.judgement import KnownInput
from rlkernel.evaluator.program.schema import TensorSpec
from rlkernel.evaluator.trace.recorder import Untraceable

KINDS = (torch.int32, torch.int64)
MOST = 1 << 14
"""Numbers of one tensor. Lengths are fewer, and tables of pages may be as many."""


def known_inputs(
    specs: Sequence[TensorSpec], examples: Iterable[Callable[[], torch.Tensor]]
) -> tuple[KnownInput, ...]:  # fmt: skip
    """The whole numbers among forward's arguments, from how each tensor is drawn; without those that a draw cannot give alone."""
    found = []
    for place, (spec, example) in enumerate(zip(specs, examples, strict=True)):
        if getattr(torch, spec.dtype) not in KINDS or not 0 < torch.Size(spec.shape).numel() <= MOST:
            continue
        try:
            values = example()
        except Untraceable:
            continue
        if values.is_contiguous() and tuple(values.stride()) == tuple(spec.stride):
            found.append(KnownInput(place, tuple(values.reshape(-1).tolist())))
    return tuple(found)


def bytes_of(known: Iterable[KnownInput], tensors: Sequence[torch.Tensor]) -> dict[int, bytes]:
    """What lies in the memory of those of `tensors` whose numbers are known, by the identity of the storage."""
    found = {}
    for one in known:
        tensor = tensors[one.place]
        data = torch.tensor(one.values, dtype=tensor.dtype)
        if data.numel() == tensor.numel():
            found[tensor.untyped_storage()._cdata] = data.numpy().tobytes()
    return found
