"""What a Program does apart from names, constants and sizes: which operators, on which earlier results.

Two references whose source differs but whose work is the same have the same form. Numbers of arguments are left out, also axes,
strides and constants. Kept are flags and texts (a transposed convolution is another operator), the overload (a sum of everything
is not a sum of rows), whether a convolution has groups, and the rank of every input. Ours.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Sequence

from rlkernel.evaluator.program.schema import Op, Program
from rlkernel.evaluator.program.values import Pairs, TensorRef, Value

CONVOLUTION = "convolution.default"
"""The operator whose last argument is the number of groups."""


def normal_form(program: Program, ranks: Sequence[int]) -> str:
    """16 hex digits of a Program's forward. ranks: the number of dimensions of each tensor among its inputs."""
    of_inputs = dict(zip(program.inputs, ranks, strict=True))
    names: dict[int, str] = {}
    count = itertools.count()

    def name(tensor: int) -> str:
        if tensor not in names:
            rank = f":{of_inputs[tensor]}" if tensor in of_inputs else ""
            names[tensor] = f"t{next(count)}{rank}"
        return names[tensor]

    lines = []
    for step in program.forward:
        if not isinstance(step, Op):
            lines.append(type(step).__name__)
            continue
        _, operator, overload = step.op.split(".")
        operator = f"{operator.rstrip('_')}.{overload}"  # whether it works in place is a matter of taste
        keywords = [value for _, value in sorted(step.kwargs.items())]
        told = [name(part.number) if isinstance(part, TensorRef) else repr(part) for part in _parts([*step.args, *keywords])]
        made = [out for out in step.outs if out is not None]
        names |= {out: f"t{next(count)}" for out in made}  # also where the operator has written to its argument
        groups = "groups" if operator == CONVOLUTION and step.args[-1] != 1 else ""
        lines.append(f"{','.join(map(name, made))}={operator}({','.join(told)}){groups}")
    returned = [name(part.number) for part in _parts([program.output]) if isinstance(part, TensorRef)]
    text = "\n".join([*lines, *returned])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _parts(values: Sequence[Value]) -> Iterator[TensorRef | bool | str]:
    """What is kept of arguments, in order."""
    for value in values:
        if isinstance(value, (TensorRef, bool, str)):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _parts(value)
        elif isinstance(value, Pairs):
            yield from _parts([item for _, item in value.items])
