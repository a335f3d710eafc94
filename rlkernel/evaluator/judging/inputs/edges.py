"""A few rows of an input at the edge of what a formula bears: tiny ones, and ones that lie wholly below zero.

What a problem's author draws has ordinary rows alone, in which an eps is never seen and a maximum may start at 0. A row of 2^-13
of a scaled one's size has a variance of 1e-6, which is like an eps. In a row below zero a maximum that starts at 0 is 0. The mean
of such a row is 10 to 25 times its deviation, so that a variance in one pass needs float32; exponentials bear it without a
maximum. Rows are slices along an axis, contiguous ones, so that a group of channels or a window may lie within. Source: ours.
"""

from __future__ import annotations

import math

import torch

from rlkernel.evaluator.messages.judgement import Edge

SHARE = 8
"""One in so many rows is tiny, and one in so many lies below zero; one of each at least."""
TINY = (2.0**-13, 2.0**-20)
"""Factors of the first and of the second half of the tiny rows. Variances of 64 become 1e-6 and 6e-11."""
SMALL = 2.0**-7
"""The factor of such rows where tinier ones would show nothing of the reference's own. A mean of 4 becomes 0.03, of which 1e-6 is
not seen."""
BELOW = 16.0
"""How far below zero all numbers of a low row lie at least: below the -10 that a maximum may be started at, and far above the -87
at which an exponential of float32 vanishes."""
DEVIATION = 7.0
"""What `BELOW` is divided by to give a low row's root mean square before it is moved. Its mean is then 10 to 25 times that, the
more the larger its largest number is."""


def edged(tensor: torch.Tensor, edge: Edge) -> torch.Tensor:
    """The tensor with such rows, changed in place. Zeros stay zeros. Nothing is waited for."""
    if edge.tiny:
        tiny = _rows(tensor, edge.axis, 2)
        first = -(-tiny.shape[edge.axis] // 2)
        one, other = (SMALL, SMALL) if edge.small else TINY
        tiny.narrow(edge.axis, 0, first).mul_(one)
        tiny.narrow(edge.axis, first, tiny.shape[edge.axis] - first).mul_(other)
    if edge.low:
        rows = _rows(tensor, edge.axis, 4)
        low = rows * (BELOW / DEVIATION / _sizes(rows, edge.axis)).to(rows.dtype)
        low -= low.amax(_across(rows, edge.axis), keepdim=True) + BELOW
        rows.copy_(low.masked_fill_(rows == 0, 0))
    return tensor


def with_rows_of(tensor: torch.Tensor, other: torch.Tensor, edge: Edge) -> torch.Tensor:
    """The tensor with the rows of another one where such rows are, changed in place."""
    for eighths in (*(2,) * edge.tiny, *(4,) * edge.low):
        _rows(tensor, edge.axis, eighths).copy_(_rows(other, edge.axis, eighths))
    return tensor


def _across(rows: torch.Tensor, axis: int) -> list[int]:
    """The axes along which a row lies; all of them where it is one element, of which nothing is known."""
    return [other for other in range(rows.dim()) if other != axis] or [axis]


def _sizes(rows: torch.Tensor, axis: int) -> torch.Tensor:
    """The root mean square of each row, in float32 at least."""
    across, wide = _across(rows, axis), torch.promote_types(rows.dtype, torch.float32)
    count = math.prod(rows.shape[other] for other in across)
    sizes: torch.Tensor = torch.linalg.vector_norm(rows, dim=across, keepdim=True, dtype=wide)
    return sizes.div_(math.sqrt(count)).clamp_min_(1e-30)


def _rows(tensor: torch.Tensor, axis: int, eighths: int) -> torch.Tensor:
    """The rows that begin at so many eighths of an axis, as a view. Of three rows and more, those at 2 and 4 eighths differ."""
    size = tensor.shape[axis]
    return tensor.narrow(axis, eighths * size // 8, max(1, size // SHARE))
