"""Whether a reference adds up whole numbers, and the sizes at which results are compared are too small to show how wide.

A sum of 16,384 products of prices and counts needs more than 32 bits, and one of 96 does not: whoever adds up in int32, or in
float32, is right there. So the largest whole number of each such sum is seen at the small size, and at full shape it is taken to
be up to twice as many times as large as there are more terms, since what they are weighted by may grow, too. So it is where
whole numbers among the inputs are larger there, such as words of a vocabulary that was made smaller.
Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from rlkernel.evaluator.judging.references.plan import SeededReference
from rlkernel.evaluator.judging.references.reference_calls import call
from rlkernel.evaluator.program.operators import COMPARISONS, argument, base_name, operators_of
from rlkernel.evaluator.program.schema import Op, Program
from rlkernel.evaluator.program.values import TensorRef

OF_ALL = {"sum", "bincount", "index_add", "scatter_add", "_int_mm", "mm", "bmm"}
ALONG = {"cumsum"}
"""Sums of whole numbers: into fewer numbers, and along an axis."""
WIDTHS = (2.0**24, 2.0**31)
"""What float32 and int32 count to."""
GROWTH = 2.0
"""How much more than its terms a sum may grow with sizes."""
Shape = tuple[int, ...]


def adds_whole_numbers(program: Program, inputs: Sequence[torch.Tensor]) -> bool:
    """Whether a reference may add up whole numbers: it is given some, or makes truth values."""
    operators = operators_of(program)
    return bool(operators & (OF_ALL | ALONG)) and (any(map(_is_whole, inputs)) or bool(operators & (COMPARISONS | {"bincount"})))


def hides_widths(
    reference: SeededReference, small: Program, full: Program, shapes: tuple[list[Shape], list[Shape]], larger: float
) -> bool:  # fmt: skip
    """Whether a sum of whole numbers leaves a width at full shape that it stays within at the small one, at which `reference` is.
    `small`, `full`: its Programs; `shapes`: of their tensors by their numbers; `larger`: how many times as large whole numbers
    among the inputs are at full shape."""
    terms, more = ([*_terms(program, of)] for program, of in zip((small, full), shapes, strict=True))
    seen = _Sums()
    with torch.no_grad(), seen:
        call(reference.model(0), reference.inputs(0), 0)
    if not [name for name, _ in terms] == [name for name, _ in more] == [name for name, *_ in seen.found]:
        return False
    for (_, few), (_, many), (_, largest, counts) in zip(terms, more, seen.found, strict=True):
        growth = (1.0 if counts else larger) * many / max(1.0, few)
        if growth > 1.0 and any(largest < width <= GROWTH * growth * largest for width in WIDTHS):
            return True
    return False


def larger_in(full: Sequence[torch.Tensor], small: Sequence[torch.Tensor]) -> float:
    """How many times as large whole numbers of some inputs are as those of others; 1 at least.

    >>> larger_in([torch.tensor([3, -900])], [torch.tensor([2, -90])]), larger_in([torch.rand(2)], [torch.rand(2)])
    (10.0, 1.0)
    >>> larger_in([torch.tensor([40], dtype=torch.uint32)], [torch.tensor([8], dtype=torch.uint32)])
    5.0
    """
    pairs = [(one, other) for one, other in zip(full, small, strict=False) if _is_whole(one) and one.dtype is not torch.bool]
    return max([1.0, *(_largest(one) / max(1, _largest(other)) for one, other in pairs)])


def _is_whole(tensor: torch.Tensor) -> bool:
    """Whether a tensor holds whole numbers or truth values."""
    return not (tensor.is_floating_point() or tensor.is_complex())


def _largest(tensor: torch.Tensor) -> float:
    return float(tensor.double().abs().amax()) if tensor.numel() else 0.0  # torch has no ends of uint32, for one


def _terms(program: Program, shapes: Sequence[Shape]) -> Iterator[tuple[str, float]]:
    """The sums of a forward, and of how many terms each of their numbers is on average."""
    for step in program.forward:
        name = base_name(step.op) if isinstance(step, Op) else ""
        if name not in OF_ALL | ALONG:
            continue
        assert isinstance(step, Op)
        given = [shapes[value.number] for value in step.args if isinstance(value, TensorRef)]
        if name in ALONG:
            axis = argument(step, "dim", 0)
            yield name, float(given[0][axis]) if given[0] else 1.0
        elif name in ("mm", "bmm", "_int_mm"):
            yield name, float(given[0][-1])
        else:
            out = step.outs[0]
            added = given[-1] if name in ("index_add", "scatter_add") else given[0]
            yield name, torch.Size(added).numel() / max(1, torch.Size(shapes[out]).numel() if out is not None else 1)


class _Sums(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the largest magnitude that each sum makes, zero of what is no whole number, and whether it counts."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: list[tuple[str, float, bool]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        name = base_name(str(func))
        if name in OF_ALL | ALONG:
            counts = name == "bincount" or args[0].dtype is torch.bool
            self.found.append((name, _largest(made) if _is_whole(made) else 0.0, counts))
        return made
