"""How much of a reference's products a candidate must do, where time is modelled and full shape is not compared.

A kernel that stops early at full shape alone looks fast, and nobody has seen its output there. What it computes is counted, and
how little an honest one needs depends on what the reference does with its products: a mask hides a triangle, two products become
one, a row is all that is kept. Products of which every element reaches the output, and that cannot be folded into one another,
need all of their arithmetic, unless a tensor that is given hides a part by its values, as a causal mask does that is added.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import torch

from rlkernel.evaluator.program.operators import base_name, operator
from rlkernel.evaluator.program.schema import Op, Program, Step
from rlkernel.evaluator.program.values import TensorRef

LEAST = 0.3
"""Share of the operations of any reference's products: half of them, where a mask hides a triangle, less what the sampling of
programs may miss."""
WHOLE = 0.9
"""The same of products that need all of them: less what the sampling of programs may miss."""
OF_DOTS = 0.97
"""The same of the operations that may be those of products, see `Counts.of_products`. Of the red team's honest kernels, none has
less than 1."""
VERY_LOW = -1e3
"""A number that leaves nothing of what it is added to, behind a softmax."""
HIDDEN = 1 / 16
"""The share of a tensor's elements that are 0 or very low, from which on it may hide a part of a product."""
SURE = 3.0
"""Standard deviations by which the places that two draws leave must be alike, where they are not the same."""
OF_MATTERING = 0.6
"""Share of the operations that structural zeros leave of products which may have other savings besides: as `LEAST` of half."""
_PRODUCTS = {"mm", "addmm", "bmm", "baddbmm"}
_VIEWS = {"t", "transpose", "permute", "view", "_unsafe_view", "reshape", "expand", "unsqueeze", "squeeze", "detach", "alias"}
_ALL_READ = {"_softmax", "_log_softmax", "native_layer_norm", "native_group_norm", "clone", "_to_copy", "copy", "empty"}
_HIDING = {"where", "masked_fill"}
_MASKS = _HIDING | {
    "tril", "triu", "diag_embed", "arange", "ones", "full", "ones_like", "full_like", "eye", "zeros", "zeros_like", "lift_fresh",
    "scalar_tensor",
}  # fmt: skip
"""Operators that hide a part of a product, and that masks are made of: what they leave is known where zeros are counted."""
_BENDING = {
    "_softmax", "_log_softmax", "native_layer_norm", "native_group_norm", "relu", "gelu", "silu", "sigmoid", "tanh", "elu",
    "mish", "leaky_relu", "hardswish", "hardtanh", "hardsigmoid", "softplus", "exp", "clamp", "clamp_min", "abs", "sin", "cos",
    "square",
}  # fmt: skip
"""Operators behind which a product's result can no longer be folded into the next product."""


@dataclass(frozen=True, slots=True)
class Share:
    """What structural zeros leave of the products of one step."""

    terms: float
    """The share of the terms."""
    sums: float
    """The share of the sums that have a term left."""

    def operations(self, work: float, length: float) -> float:
        """Those that are left of `work` in sums of so many terms: a multiplication for each term, and an addition for each but
        the first of a sum."""
        return work * (self.terms - self.sums / (2.0 * length))


@dataclass(frozen=True, slots=True)
class Matters:
    """What structural zeros leave of a reference, see `judging.zeros`."""

    steps: Mapping[int, Share]
    """Step of forward -> the share of its products, where not all of them matter."""
    inputs: tuple[float, ...]
    """The share of the elements of each tensor among the inputs."""


ALL = Matters({}, ())


def least_share(program: Program, matter: float = 1.0) -> float:
    """The share of the operations of a reference's products that a candidate must do. `matter`: the share that structural zeros
    leave, 1 where that is not known.
    """
    usual = _of_whole(program, frozenset())
    if matter >= 1.0:
        return usual
    return min(usual, matter * (WHOLE if _of_whole(program, _MASKS) == WHOLE else OF_MATTERING))


def _of_whole(program: Program, masks: Collection[str]) -> float:
    """The share where there are no structural zeros, or none but those that these operators make.

    All of them, if each product multiplies two tensors that depend on different ones, and that are given or were bent since the
    last product. Example: `relu(x @ a) @ b`; of `x @ a @ b`, `a @ b` may be folded, and `x @ x.t()` is symmetric.
    """
    steps = [step for step in program.forward if isinstance(step, Op)]
    if len(steps) != len(program.forward) or not all(_reads_all(step, masks) for step in steps):
        return LEAST
    known: dict[int, _Origin] = {}
    products: set[frozenset[int]] = set()
    for step in steps:
        name, read = base_name(step.op), _read(step)
        origins = [known.get(number, _Origin(frozenset({number}), False)) for number in read]
        whole = frozenset().union(*(origin.given for origin in origins))
        open_ = sum(origin.open for origin in origins)
        if name in _PRODUCTS:
            left, right = origins[-2:]
            whole = left.given | right.given
            if left.open or right.open or left.given == right.given or whole in products:
                return LEAST  # the last of these: it is the same product once more
            products.add(whole)
        elif open_ > 1:
            return LEAST  # e.g. the sum of two products, which may be one product of sums
        made = _Origin(whole, name in _PRODUCTS or (open_ > 0 and name not in _BENDING))
        known |= {number: made for number in step.outs if number is not None}
    return WHOLE if products else LEAST


def may_hide(drawn: Iterable[torch.Tensor], again: Iterable[torch.Tensor]) -> bool:
    """Whether one of the tensors that a forward is given leaves out a part of what it is added to or multiplied by: some of its
    elements are always very low, or always 0 where others are not. `again`: the same tensors, drawn once more.

    Example: -inf above the diagonal of a mask, or a weight that is triangular; not a bias of zeros, nor the zeros of
    `relu(torch.randn(n))`, which lie elsewhere in each draw, so that no kernel can pass over them unseen. One-hot rows do, see
    `leaves_rows`.
    """
    return any(_hides(one.detach(), other.detach()) for one, other in zip(drawn, again, strict=False))


def has_one_product(program: Program) -> bool:
    """Whether a forward multiplies once."""
    return sum(isinstance(step, Op) and base_name(step.op) in _PRODUCTS for step in program.forward) == 1


def leaves_rows(drawn: Iterable[torch.Tensor], again: Iterable[torch.Tensor]) -> bool:
    """Whether nearly all elements of one of the tensors that a forward is given are 0, as those of one-hot rows are: then nothing
    of its only product need be done, since a kernel may gather what the others name."""
    pairs = [(one, other) for one, other in zip(drawn, again, strict=False) if one.shape == other.shape and one.numel() > 1]
    return any(bool(one.any()) and _nearly_all(one == 0, other == 0) for one, other in pairs)


def _hides(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.numel() < 2 or one.is_complex():
        return False
    if one.shape != other.shape:
        other = one
    if one.is_floating_point() and one.itemsize == 1:  # torch compares no float8
        one, other = one.float(), other.float()
    low, zero = (one <= VERY_LOW, other <= VERY_LOW), (one == 0, other == 0)
    return _stay(*low) or (bool(one.any()) and (_nearly_all(*zero) or _stay(*zero)))


def _nearly_all(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two draws both leave no more than a sixteenth."""
    return min(int(one.sum()), int(other.sum())) >= (1.0 - HIDDEN) * one.numel()


def _stay(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether what two draws hide are the same places, or more of them are the same than if a sixteenth were."""
    if min(int(one.sum()), int(other.sum())) < HIDDEN * one.numel():
        return False
    if torch.equal(one, other):
        return True
    first, second = int((~one).sum()), int((~other).sum())
    total = (1.0 - HIDDEN) * one.numel()
    expected = first * second / total  # places that are left by both, were all others left independently
    deviation = math.sqrt(expected * max(0.0, 1.0 - first / total) * max(0.0, 1.0 - second / total))
    return int((~one & ~other).sum()) > expected + SURE * (1.0 + deviation)


@dataclass(frozen=True, slots=True)
class _Origin:
    """What a tensor is made of."""

    given: frozenset[int]
    """The arguments and parameters."""
    open: bool
    """Whether it is a product that was not bent since, so that the next product could be folded into it."""


def _read(step: Op) -> list[int]:
    return [value.number for value in step.args if isinstance(value, TensorRef)]


def _reads_all(step: Step, masks: Collection[str]) -> bool:
    """Whether every element that an operator is given reaches what it makes, in a way of its own."""
    assert isinstance(step, Op)
    name = base_name(step.op)
    pointwise = torch.Tag.pointwise in operator(step.op).tags and name not in _HIDING
    return pointwise or name in _PRODUCTS or name in _VIEWS or name in _ALL_READ or name in masks
