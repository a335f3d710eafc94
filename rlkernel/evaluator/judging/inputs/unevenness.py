"""Numbers that differ in size from place to place, so that no part of them stands for all.

The root mean square of 4,096 normal numbers is that of any other 4,096 within 1.6 %, and half precision hides less than that: a
kernel that reads half of a row would be right. So each element of a round's inputs is multiplied by factors that its place along
each axis gives, one for each bit of the place. Half of a row, every other element, or all but a tail is then another sum. Along
all axes alike, the factors leave symmetric and definite matrices so, but for roundings.

The largest number stays as large as it was, and no factor is below a tenth of another. With an eighth more for each of 24 bits
some elements would be 17 times as large, and exponentials of honest kernels would end there (`exp(2 * x)` of a tanh).
Source: ours.
"""

from __future__ import annotations

import functools
import math

import torch

STEP = 0.125
"""How much larger or smaller than the others each bit of a place makes an element, at most."""
RANGE = 10.0
"""How many times as large as the smallest factor the largest one is, at most."""
KEPT = 1 << 14
"""The most places whose factors are kept, a power of two: they go to a GPU at once, without a wait."""
HOST = torch.device("cpu")
ROUNDED = 1e-3
"""How far from one a sum of shares may be."""
OTHERWISE = 0.75
"""The share of elements that differ between two draws of an input whose numbers are drawn one by one."""


def uneven(tensor: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
    """The tensor, multiplied in place, by `scale` besides. What shares memory with others along an axis of stride 0 stays equal
    along it. A GPU is not waited for."""
    axes = [axis for axis, size in enumerate(tensor.shape) if size > 1 and tensor.stride(axis)]
    if not (axes and tensor.numel()):
        return tensor if scale == 1.0 else tensor.mul_(scale)
    step = step_of(sum((tensor.shape[axis] - 1).bit_length() for axis in axes))
    largest = _largest(tensor)
    for axis in axes:
        shape = [-1] + [1] * (tensor.dim() - 1 - axis)
        tensor.mul_(factors(tensor.shape[axis], step, tensor.dtype, tensor.device).view(shape))
    # What is zero or infinite gives no ratio.
    grown = (largest / _largest(tensor)).nan_to_num_(1.0, 1.0, 1.0)
    return tensor.mul_((grown * scale).to(tensor.dtype))


def _largest(tensor: torch.Tensor) -> torch.Tensor:
    """The largest magnitude, in one pass."""
    found: torch.Tensor = torch.linalg.vector_norm(tensor, math.inf)
    return found if found.dtype is torch.float64 else found.float()


def step_of(bits: int) -> float:
    """The step s for so many bits: ((1 + s) / (1 - s)) ^ bits is `RANGE` at most. Example: 0.125 for 9, 0.048 for 24."""
    return min(STEP, math.tanh(math.log(RANGE) / (2 * max(1, bits))))


def factors(size: int, step: float, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """What elements are multiplied by at the first `size` places along an axis: 1 where all bits are set. The tensor may be one
    that is kept, on the host and nowhere else, because a candidate's kernels write to a GPU: nobody may change it. A GPU is not
    waited for."""
    if size <= KEPT:
        kept = torch.float32 if dtype.itemsize > 4 else dtype  # CUDA waits for copies of more than 64 KiB
        return _kept(size, step, kept).to(device, non_blocking=True).to(dtype)
    low = _kept(KEPT, step, torch.float32).to(device, non_blocking=True)
    high = factors(-(-size // KEPT), step, torch.float32, device)
    return torch.outer(high, low).view(-1)[:size].to(dtype)


@functools.lru_cache(maxsize=256)
def _kept(size: int, step: float, dtype: torch.dtype) -> torch.Tensor:
    """The factors of so many places, which take five operators for each bit."""
    place = torch.arange(size, device=HOST)
    found = torch.ones(size, dtype=torch.float32, device=HOST)
    for bit in range((size - 1).bit_length()):
        found *= 1.0 - 2.0 * step / (1.0 + step) * (1 - (place >> bit & 1))
    return found.to(dtype)


def drawn_one_by_one(tensor: torch.Tensor, again: torch.Tensor) -> bool:
    """Whether the numbers of an input, and of another draw of it, stand in no order and say nothing of each other. Example:
    those of `torch.randn`; not a table of cosines, which is the same in each draw, nor edges that are sorted, nor what holds
    each number twice. A GPU is waited for."""
    if tensor.shape != again.shape or not bool((tensor != again).float().mean() > OTHERWISE):
        return False
    last = tensor.shape[-1] if tensor.dim() else 0
    if last < 2:
        return True
    if stands_in_order(tensor):
        return False
    half = last // 2
    return not (torch.equal(tensor[..., :half], tensor[..., half:]) or torch.equal(tensor[..., ::2], tensor[..., 1::2]))


def stands_in_order(tensor: torch.Tensor) -> bool:
    """Whether the numbers of all rows rise, or fall, along the last axis. A GPU is waited for."""
    if not tensor.dim() or tensor.shape[-1] < 2:
        return False
    low, high = torch.stack(tensor.diff(dim=-1).aminmax()).tolist()
    return bool(low >= 0.0 or high <= 0.0)


def holds_shares(tensor: torch.Tensor) -> bool:
    """Whether no number is negative and each row along the last axis has a sum of one, as those of a softmax. A GPU is waited
    for.

    >>> holds_shares(torch.randn(4, 9).softmax(-1)), holds_shares(torch.rand(4, 9)), holds_shares(torch.ones(4, 1))
    (True, False, False)
    """
    if not tensor.dim() or tensor.shape[-1] < 2 or not tensor.numel() or not tensor.is_floating_point():
        return False
    far = (tensor.sum(-1, dtype=torch.promote_types(tensor.dtype, torch.float32)) - 1.0).abs().amax()
    least, far_off = torch.stack([tensor.amin().to(far.dtype), far]).tolist()
    return bool(least >= 0.0 and far_off <= max(ROUNDED, 4.0 * torch.finfo(tensor.dtype).eps))
