"""Numbers that differ in size from place to place, so that no part of them stands for all.

The root mean square of 4,096 normal numbers is that of any other 4,096 within 1.6 %, and half precision hides less than that: a
kernel that reads half of a row would be right. So each element of a round's inputs is multiplied by factors that its place along
each axis gives, one for each bit of the place. Half of a row, every other element, or all but a tail is then another sum. Along
all axes alike, the factors leave symmetric and definite matrices so, but for roundings. Source: ours.
"""

from __future__ import annotations

import torch

STEP = 0.125
"""How much larger or smaller than 1 each bit of a place makes an element."""
OTHERWISE = 0.75
"""The share of elements that differ between two draws of an input whose numbers are drawn one by one."""


def uneven(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, multiplied in place. What shares memory with others along an axis of stride 0 stays equal along it."""
    for axis, (size, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        if size > 1 and stride:
            shape = [-1] + [1] * (tensor.dim() - 1 - axis)
            tensor.mul_(factors(size, tensor.device).to(tensor.dtype).view(shape))
    return tensor


def factors(size: int, device: torch.device) -> torch.Tensor:
    """What elements are multiplied by at the first `size` places along an axis, in float32."""
    place = torch.arange(size, device=device)
    found = torch.ones(size, device=device)
    for bit in range((size - 1).bit_length()):
        found *= 1.0 - STEP + 2.0 * STEP * (place >> bit & 1)
    return found


def drawn_one_by_one(tensor: torch.Tensor, again: torch.Tensor) -> bool:
    """Whether the numbers of an input, and of another draw of it, stand in no order and say nothing of each other. Example:
    those of `torch.randn`; not a table of cosines, which is the same in each draw, nor edges that are sorted, nor what holds
    each number twice. A GPU is waited for."""
    if tensor.shape != again.shape or not bool((tensor != again).float().mean() > OTHERWISE):
        return False
    last = tensor.shape[-1] if tensor.dim() else 0
    if last < 2:
        return True
    steps = tensor.diff(dim=-1)
    if bool((steps >= 0).all()) or bool((steps <= 0).all()):
        return False
    half = last // 2
    return not (torch.equal(tensor[..., :half], tensor[..., half:]) or torch.equal(tensor[..., ::2], tensor[..., 1::2]))
