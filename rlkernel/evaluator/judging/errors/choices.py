"""Indices of which PyTorch leaves open which of equal numbers they name: those of `topk`, `kthvalue`, `median`, and of a `sort`
that is not stable.

Another choice is right where it names numbers that are equal, as 0 and -0 are, and none twice. `argmax`, `max` and a stable
`sort` give the first of equal numbers, and nothing else is right there. Of what a reference makes of such indices nothing is
known. Source: PyTorch's documentation of these functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from rlkernel.evaluator.judging.errors.comparison import bits
from rlkernel.evaluator.program.operators import base_name, by_name

OPEN = {"topk", "sort", "kthvalue", "median", "nanmedian"}
LAST = -1
"""The axis of these operators where none is named."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Indices of numbers along an axis."""

    numbers: torch.Tensor
    axis: int
    kept: bool
    """Whether the indices have that axis, along which none may occur twice."""

    def allows(self, found: torch.Tensor, wanted: torch.Tensor) -> bool:
        """Whether these indices name the same numbers as those that the reference gave."""
        size = self.numbers.shape[self.axis]
        if found.shape != wanted.shape or found.dtype is not wanted.dtype or not found.numel():
            return False
        if bool(((found < 0) | (found >= size)).any()):
            return False
        one, other = self.named(found), self.named(wanted)
        if not bool(((one == other) | ((one != one) & (other != other))).all()):  # NaN is as large as any other NaN
            return False
        return not self.kept or bool((found.sort(self.axis).values.diff(dim=self.axis) > 0).all())

    def named(self, indices: torch.Tensor) -> torch.Tensor:
        """The numbers that these indices name."""
        return self.numbers.gather(self.axis, indices if self.kept else indices.unsqueeze(self.axis))


class Choosing(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes such indices while a reference is called."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._made: list[tuple[torch.Tensor, torch.Tensor, Choice]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        chooses = base_name(str(func)) in OPEN and isinstance(args[0], torch.Tensor) and args[0].dim()
        before = args[0].clone() if chooses else None
        made = func(*args, **(kwargs or {}))
        if before is not None and isinstance(made, tuple):
            given = by_name(func, args, kwargs)
            axis = given.get("dim", LAST)
            if not given.get("stable"):
                # a copy: the reference may change them in place, so that all are equal afterwards
                choice = Choice(before, axis % before.dim(), made[1].dim() == before.dim())
                self._made.append((made[0], made[1], choice))
        return made

    def of(self, outputs: Sequence[torch.Tensor]) -> dict[int, Choice]:
        """The outputs that are such indices, by their places; none that were changed since, or whose values were."""
        found = {}
        for place, output in enumerate(outputs):
            for values, indices, choice in self._made:
                same = output.data_ptr() == indices.data_ptr() and output.shape == indices.shape
                if same and output.dtype is indices.dtype and bits(choice.named(indices)).equal(_aligned(values, choice)):
                    found[place] = choice
        return found


def _aligned(values: torch.Tensor, choice: Choice) -> torch.Tensor:
    """The bits of an operator's values, with the axis along which they were found."""
    return bits(values if choice.kept else values.unsqueeze(choice.axis))
