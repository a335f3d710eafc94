"""How much of a reference's products a candidate must do, where time is modelled and full shape is not compared.

A kernel that stops early at full shape alone looks fast, and nobody has seen its output there. What it computes is counted, and
how little an honest one needs depends on what the reference does with its products: a mask hides a triangle, two products become
one, a row is all that is kept. One product of two tensors that are given, of which every element reaches the output, needs all of
its arithmetic.
"""

from __future__ import annotations

import torch

from rlkernel.evaluator.judging.operator_costs import base_name
from rlkernel.evaluator.program.operators import operator
from rlkernel.evaluator.program.schema import Op, Program, Step
from rlkernel.evaluator.program.values import TensorRef

LEAST = 0.3
"""Share of the operations of any reference's products: half of them, where a mask hides a triangle, less what the sampling of
programs may miss."""
WHOLE = 0.75
"""The same of a product that needs all of them: less what the sampling of programs may miss, or a faster algorithm saves."""
_PRODUCTS = {"mm", "addmm", "bmm", "baddbmm"}
_VIEWS = {"t", "transpose", "permute", "view", "_unsafe_view", "reshape", "expand", "unsqueeze", "squeeze", "detach", "alias"}
_ALL_READ = {"_softmax", "_log_softmax", "native_layer_norm", "native_group_norm", "clone", "_to_copy", "copy", "empty"}
_HIDING = {"where", "masked_fill"}


def least_share(program: Program) -> float:
    """The share of the operations of a reference's products that a candidate must do."""
    steps = [step for step in program.forward if isinstance(step, Op)]
    products = [step for step in steps if base_name(step.op) in _PRODUCTS]
    if len(products) != 1 or len(steps) != len(program.forward) or not all(_reads_all(step) for step in steps):
        return LEAST
    roots = {number: number for number in (*program.inputs, *program.state.values())}
    for step in steps[: steps.index(products[0])]:
        for made in step.outs if base_name(step.op) in _VIEWS else ():
            read = _read(step)
            if made is not None and read and read[0] in roots:
                roots[made] = roots[read[0]]
    factors = _read(products[0])[-2:]
    given = [roots[number] for number in factors if number in roots]
    return WHOLE if len(set(given)) == 2 else LEAST


def _read(step: Op) -> list[int]:
    return [value.number for value in step.args if isinstance(value, TensorRef)]


def _reads_all(step: Step) -> bool:
    """Whether every element that an operator is given reaches what it makes, in a way of its own."""
    assert isinstance(step, Op)
    name = base_name(step.op)
    pointwise = torch.Tag.pointwise in operator(step.op).tags and name not in _HIDING
    return pointwise or name in _PRODUCTS or name in _VIEWS or name in _ALL_READ
