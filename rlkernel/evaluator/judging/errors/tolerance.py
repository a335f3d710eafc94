"""How far an output may be from the exact result: measured on the reference, not chosen.

A candidate may err 8 times as much as the reference itself does (`own_error.py`), and always as much as a floor per dtype allows.

Where a candidate may use tf32 and the reference may not, a float32 output may besides miss by what tf32 does to it: 3 times the
error of the float64 reference whose products' operands are rounded to tf32, or 1.25 times that of one whose operands are cut off
(`tensor_cores.py`). bfloat16 rounds 8 times as coarsely as tf32. A reference without products has no such error. It adds at most
`CORES_CAP`, and less than an output varies by: where tf32 in all products misses by more, tf32 in some of them may be right.
Where it misses by more than `ROUNDED`, nothing is added.

Operands that are cut off are too small, all of them, by 0.034 % on average. A long sum of positive products, such as those of
`torch.rand`, is then 0.07 % too small and otherwise nearly exact, while it may vary by no more than that. There an output may be
too small by such a factor, which all its values share; what is left when the factor is divided out must be within the bounds.

Where an output varies by less than the floor, the floor is a quarter of its spread: an answer that is constant near the mean is
wrong. Where the reference gives noise, such as the mean of what was normalised, another noise of its size is right, and so are
zeros.

Whole numbers must be equal, but for those that the reference itself rounds to a neighbour: of quantised values, which were
floating-point numbers near a half, float64 rounds some the other way. A candidate may miss 8 times as many, by one. Source: ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch

from rlkernel.evaluator.judging.errors.own_error import ELEMENT_CAP, REFERENCE_FACTOR, SPREAD, WHOLE, OwnError
from rlkernel.evaluator.messages.judgement import Tolerance
from rlkernel.evaluator.program.codes import VALUED, equal_or_wrong
from rlkernel.types import Precision

STEP = {dtype: torch.finfo(dtype).eps for dtype in VALUED}
"""The step from one code to the next, relative."""
FLOOR = {torch.float64: 1e-9, torch.float32: 5e-5, torch.float16: 3e-3, torch.bfloat16: 2e-2} | {
    dtype: 0.4 * step for dtype, step in STEP.items()
}
"""Norm-relative error that is always allowed,
by the reference output's dtype. float32's lies under what tf32 or half precision give."""
TF32_FLOOR = 2e-3
"""float32's floor when tf32 is allowed on both sides."""
ELEMENT_FLOOR = {torch.float64: 1e-7, torch.float32: 1e-3, torch.float16: 2e-2, torch.bfloat16: 1e-1} | {
    dtype: 1.05 * step for dtype, step in STEP.items()
}
"""Error of one element, relative to |element| + root mean square, that is always allowed: in half precision about 15
roundings, of codes the next one."""
TF32_ELEMENT_FLOOR = 2e-2
BESIDE = 1.25
"""How far from float64 a candidate may be that is no less exact than the reference: another order of its roundings."""
MOST_ROUNDED = 0.05
"""Share of an output's whole numbers that may be off by one at most, or be others because roundings decide them."""
ROUNDED = 0.3
"""Norm-relative error up to which the reference rounds, and does not jump."""


def tolerance(dtype: torch.dtype, own: OwnError, precision: Precision) -> Tolerance:
    """What is allowed of an output of this dtype where the reference's own error is `own`. Of whole numbers `element` is the
    share that may be off by one."""
    if dtype in WHOLE:
        return Tolerance(0.0, min(MOST_ROUNDED, REFERENCE_FACTOR * own.element))
    if equal_or_wrong(dtype):
        return Tolerance(0.0, 0.0)
    if own.noise:
        return Tolerance(own.noise, math.inf, own.huge)  # single elements of noise tell nothing
    loose = precision is Precision.TF32 and dtype is torch.float32
    floor = TF32_FLOOR if loose else FLOOR.get(dtype, FLOOR[torch.float32])
    if own.spread > REFERENCE_FACTOR * max(own.norm, torch.finfo(dtype).eps / 4):
        floor = min(floor, SPREAD * own.spread)
    least = TF32_ELEMENT_FLOOR if loose else ELEMENT_FLOOR.get(dtype, ELEMENT_FLOOR[torch.float32])
    norm, element = max(floor, REFERENCE_FACTOR * own.norm), max(least, REFERENCE_FACTOR * own.element)
    shrink = 0.0
    if precision is Precision.PYTORCH and own.shrunk:
        norm, element, shrink = max(norm, own.cores_rest), max(element, own.cores_element), own.shrink
    elif precision is Precision.PYTORCH and 0.0 < own.cores <= ROUNDED:
        norm, element = max(norm, min(own.cores, own.most_of_cores)), max(element, own.cores_element)
    return Tolerance(norm, min(ELEMENT_CAP, element), own.huge, shrink)


def widest(*limits: Tolerance) -> Tolerance:
    """What any of these allows; what counts as huge is the first one's."""
    norm, element, shrink = (max(values) for values in zip(*((a.norm, a.element, a.shrink) for a in limits), strict=True))
    return Tolerance(norm, element, limits[0].huge, shrink)


def of_state(
    dtype: torch.dtype, own: OwnError, outputs: Sequence[torch.Tensor], allowed: Sequence[Tolerance], precision: Precision
) -> Tolerance:
    """What is allowed of state that forward changes: as much as of an output of its dtype, since both are made of the same
    products. `allowed`: of each of the `outputs`."""
    return widest(tolerance(dtype, own, precision), *(a for o, a in zip(outputs, allowed, strict=True) if o.dtype is dtype))


def beside(dtype: torch.dtype, own: OwnError, precision: Precision) -> Tolerance:
    """What is allowed from the float64 result where the reference is its own measure: a candidate that is no farther from it than
    the reference, such as one that rounds less, is right, too."""
    floor = tolerance(dtype, OwnError(spread=own.spread, huge=own.huge), precision)
    if own.norm > ROUNDED:
        return floor
    norm, element = BESIDE * own.norm, BESIDE * own.element
    return replace(floor, norm=max(floor.norm, norm), element=min(ELEMENT_CAP, max(floor.element, element)))
