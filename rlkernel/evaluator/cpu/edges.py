"""What a block pointer or a tensor descriptor leaves out beyond its edges, in the other programs of a grid (`kinds`).

Triton's interpreter makes the mask of a block in numpy. Here it carries what it is in the other programs, as a mask does that a
kernel computes, so that programs at an edge are set apart and counted, in place of being drawn or not by chance. Source: ours.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime.interpreter import BlockPointerHandle, TensorDescHandle, TensorHandle

from rlkernel.evaluator.cpu.kinds import Array, carrying, others, varies

Addresses = tuple[TensorHandle, Any]


def kept(of: Sequence[TensorHandle], data: Iterable[Array]) -> list[TensorHandle]:
    """Handles with this data, which are in the other programs what those of `of` are."""
    found = []
    for handle, values in zip(of, data, strict=True):
        one = TensorHandle(values, handle.dtype)
        found.append(carrying(one, vars(handle).get("others")) if varies(handle) else one)
    return found


def _inside(offset: TensorHandle, size: TensorHandle, block: int) -> Array | None:
    """Whether a block's first and last place along an axis are inside of a tensor: (programs or 1, 2). None where it depends on
    the program and nobody knows how."""
    begin, end = others(offset), others(size)
    if (begin is None and varies(offset)) or (end is None and varies(size)):
        return None
    begin, end = (
        np.reshape(known.data if elsewhere is None else elsewhere, (-1, 1)) for known, elsewhere in ((offset, begin), (size, end))
    )
    places = begin + np.array([[0, block - 1]])
    return np.asarray((places >= 0) & (places < end))


def _masked(mask: Any, offsets: Sequence[TensorHandle], block: Any, axes: Iterable[int]) -> Any:
    """The mask of a block at these offsets that ends at these axes, with what it is in the other programs."""
    ends = [_inside(offsets[axis], block.shape[axis], block.block_shape[axis]) for axis in axes]
    known = [one for one in ends if one is not None]
    if len(known) < len(ends) or all(one.shape[0] == 1 for one in known):
        return mask
    here = np.asarray(mask)
    made = carrying(TensorHandle(here, tl.int1), functools.reduce(np.logical_and, known))
    made.parts = [carrying(TensorHandle(here, tl.int1), one) for one in known if one.shape[0] > 1]
    return made


def install() -> None:
    """For good: the masks of block pointers and tensor descriptors say what they are in the other programs."""

    def following(method: Callable[[Any, Any], Addresses], axes_of: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Addresses]:
        @functools.wraps(method)
        def call(block: Any, given: Any) -> Addresses:
            addresses, mask = method(block, given)
            offsets, axes = axes_of(block, given)
            return addresses, _masked(mask, offsets, block, axes)

        return call

    pointers, descriptors = BlockPointerHandle, TensorDescHandle
    pointers.materialize_pointers = following(pointers.materialize_pointers, lambda block, axes: (block.offsets, axes))
    descriptors.materialize_pointers = following(
        descriptors.materialize_pointers, lambda block, offsets: (offsets, range(block.ndim))
    )
