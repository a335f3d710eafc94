"""The whole numbers of the inputs that are known at full shape."""

from __future__ import annotations

from pathlib import Path

import torch

from rlkernel.evaluator.devices import profile_of
from rlkernel.evaluator.judging.costs.known import MOST, bytes_of, known_inputs
from rlkernel.evaluator.judging.preparing import prepare
from rlkernel.evaluator.messages.judgement import KnownInput
from rlkernel.evaluator.program.schema import TensorSpec
from rlkernel.evaluator.trace.recorder import Untraceable
from rlkernel.types import Precision

LENGTHS = Path(__file__).parents[3] / "red_team/problems/lengths.py"


def spec(tensor: torch.Tensor) -> TensorSpec:
    return TensorSpec(tuple(tensor.shape), tuple(tensor.stride()), str(tensor.dtype).removeprefix("torch."))


def test_lengths_are_drawn_as_the_problems_author_draws_them() -> None:
    """As many as at full shape, and no longer than there."""
    found = prepare(LENGTHS.read_text(), "lengths", profile_of("h200"), Precision.PYTORCH)
    (one,) = found.known
    assert (one.place, len(one.values)) == (1, 256)
    assert min(one.values) >= 1 and 64 < max(one.values) <= 1024
    assert found.told is not None and found.told.floor_us < 0.6 * found.costs.floor_us


def test_few_whole_numbers_that_lie_together_are_known_and_nothing_else() -> None:
    given = [
        torch.arange(5),
        torch.rand(5),
        torch.arange(MOST + 1),
        torch.arange(8, dtype=torch.int32).view(4, 2).t(),
        torch.arange(3, dtype=torch.uint8),
    ]
    found = known_inputs([spec(tensor) for tensor in given], [lambda tensor=tensor: tensor for tensor in given])
    assert found == (KnownInput(0, (0, 1, 2, 3, 4)),)


def test_what_cannot_be_drawn_alone_is_not_known() -> None:
    def refuses() -> torch.Tensor:
        raise Untraceable("a large tensor")

    assert known_inputs([spec(torch.arange(5))], [refuses]) == ()


def test_numbers_become_the_bytes_of_their_storage() -> None:
    tensor = torch.empty(3, dtype=torch.int32, device="meta")
    found = bytes_of([KnownInput(1, (1, 2, 300))], [torch.empty(1), tensor])
    assert found == {tensor.untyped_storage()._cdata: bytes([1, 0, 0, 0, 2, 0, 0, 0, 44, 1, 0, 0])}
    assert bytes_of([KnownInput(0, (1, 2))], [torch.empty(3, dtype=torch.int64)]) == {}
