"""The reference in float64: whole, along the batch where memory is short, and not at all where the batch is no batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from rlkernel.evaluator.gpu import exact
from rlkernel.evaluator.gpu.exact import exact_outputs
from rlkernel.evaluator.judging.inputs.nudging import nudging
from rlkernel.evaluator.judging.references.reference_calls import call, tensors_of

WEIGHT = torch.randn(5, generator=torch.Generator().manual_seed(1))


class Rows(nn.Module):
    """Each row for itself."""

    def __init__(self, forward: Callable[[torch.Tensor, torch.Tensor], Any]) -> None:
        super().__init__()
        self.weight = nn.Parameter(WEIGHT.clone())
        self._function = forward

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        return self._function(x * self.weight, y)


def draw() -> list[Any]:
    made = torch.Generator().manual_seed(2)
    return [torch.randn(7, 5, generator=made), torch.randn(5, generator=made)]


@pytest.fixture
def short_of_memory(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The whole does not fit, and neither do two halves. What was tried is returned."""
    tried: list[int] = []
    along = exact._along_the_batch

    def whole(*args: Any) -> Any:
        raise torch.OutOfMemoryError("too much")

    def chunks(model: Any, given: Any, seed: int, found: Any, change: Any, count: int) -> Any:
        tried.append(count)
        if count < 4:
            raise torch.OutOfMemoryError("too much")
        return along(model, given, seed, found, change, count)

    monkeypatch.setattr(exact, "_whole", whole)
    monkeypatch.setattr(exact, "_along_the_batch", chunks)
    return tried


def wanted(model: Rows) -> list[torch.Tensor]:
    return tensors_of(call(model, draw(), 0))


def test_a_text_that_asks_for_its_dtypes_is_told_the_usual_ones() -> None:
    def forward(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        assert x.dtype == y.dtype == torch.float32
        return x @ y

    found = exact_outputs(Rows(forward), draw, 0, wanted(Rows(forward)))
    x, y = draw()
    assert found is not None and found[0].dtype is torch.float64
    assert torch.equal(found[0], (x.double() * WEIGHT.double()) @ y.double())


def test_a_reference_that_does_not_run_in_float64_has_none() -> None:
    def forward(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        assert x.element_size() == 4
        return x @ y

    assert exact_outputs(Rows(forward), draw, 0, wanted(Rows(forward))) is None


def test_the_whole_is_float64_and_the_model_stays() -> None:
    model = Rows(lambda x, y: (x + y, x.argmax(1)))
    found = exact_outputs(model, draw, 0, wanted(model))
    assert found is not None
    x, y = draw()
    assert torch.equal(found[0], x.double() * WEIGHT.double() + y.double())
    assert found[1].dtype is torch.int64
    assert model.weight.dtype is torch.float32


def test_state_stands_behind_the_outputs(short_of_memory: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    class Counted(Rows):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
            with torch.no_grad():
                self.weight.add_(0.1)
            return x + y

    model = Counted(lambda x, y: x)
    found = [*wanted(Counted(lambda x, y: x)), WEIGHT + 0.1]
    chunked = exact_outputs(model, draw, 0, found, names=["weight"])
    assert short_of_memory == [2, 4]
    assert chunked is not None
    assert torch.equal(chunked[1], found[1]), "in chunks it would be added to several times"
    monkeypatch.undo()
    whole = exact_outputs(model, draw, 0, found, names=["weight"])
    assert whole is not None
    assert torch.equal(whole[1], WEIGHT.double() + 0.1)
    assert torch.equal(model.weight, WEIGHT), "the model stays"


def test_nudged_inputs_are_off_by_half_of_their_rounding_at_most() -> None:
    model = Rows(lambda x, y: x)
    found = exact_outputs(model, draw, 0, wanted(model), nudging)
    assert found is not None
    right = draw()[0].double() * WEIGHT.double()
    off = ((found[0] - right) / right).abs()
    assert 0 < float(off.max()) <= 2**-24 + 1e-15


def test_what_does_not_fit_is_cut_along_the_batch(short_of_memory: list[int]) -> None:
    model = Rows(lambda x, y: (x + y, x.argmax(1)))
    found = exact_outputs(model, draw, 0, wanted(model))
    assert short_of_memory == [2, 4]
    assert found is not None
    x, y = draw()
    right = x.double() * WEIGHT.double() + y.double()
    assert torch.equal(found[0], right), "y has no batch and is given whole"
    assert torch.equal(found[1], right.argmax(1).new_tensor((x * WEIGHT).argmax(1).tolist()))


@pytest.mark.parametrize(
    "function",
    [lambda x, y: x - x.mean(0), lambda x, y: x.sum(), lambda x, y: x[:3], lambda x, y: nn.functional.dropout(x)],
    ids=["statistics of the batch", "one number", "another batch", "random"],
)
def test_what_is_no_batch_has_no_exact_result(short_of_memory: list[int], function: Any) -> None:
    model = Rows(function)
    assert exact_outputs(model, draw, 0, wanted(model)) is None


def test_a_reference_that_casts_runs_in_float64_without_its_casts() -> None:
    model = Rows(lambda x, y: x @ torch.ones(5, 2, dtype=torch.float32))
    (found,) = exact_outputs(model, draw, 0, wanted(model)) or [torch.zeros(())]
    x, _ = draw()
    assert torch.equal(found, (x.double() * WEIGHT.double()) @ torch.ones(5, 2, dtype=torch.float64))
