"""References whose text casts run in float64 nevertheless."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from rlkernel.evaluator.judging.references.reference_calls import exact_outputs
from rlkernel.reference import load_reference


class Casting(nn.Module):
    """A product of float32 inputs and half weights, on top of what a buffer counts."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([[1.0, 1 / 3]], dtype=torch.float16))
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.calls += 1
        made = torch.zeros(2, 1) + self.calls.float()
        return x @ self.weight.float().t() + made, (x > 0).to(torch.int8)


def test_casts_and_new_tensors_are_float64() -> None:
    x = torch.tensor([[1.0, 2.0], [3.0, -4.0]])
    model = Casting()
    third = float(model.weight.detach()[0, 1])
    outputs = exact_outputs(model, [x], 0)
    assert outputs is not None
    assert outputs[0].dtype is torch.float64
    assert outputs[0].tolist() == [
        [1 + 2 * third + 1],
        [3 - 4 * third + 1],
    ]  # the buffer counts once, in two calls
    assert outputs[1].dtype is torch.int8
    assert torch.get_default_dtype() is torch.float32


class Asking(nn.Module):
    """A product whose text asks for the dtypes of all that it is given, and of what it has computed."""

    def __init__(self, weights: torch.dtype) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([[1.0, 1 / 3]], dtype=weights))

    def forward(self, x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        assert x.dtype == out.dtype == torch.float32
        found = torch.empty_like(x[:, :1])
        if self.weight[:, 0].dtype is torch.float16:
            raise TypeError("float16")
        assert found.dtype is self.weight.dtype
        return out.copy_(torch.mm(x, self.weight.t(), out=found.to(x.dtype)))


def test_who_asks_for_dtypes_is_told_the_usual_ones() -> None:
    x, out = torch.tensor([[1.0, 2.0], [3.0, -4.0]]), torch.zeros(2, 1)
    model = Asking(torch.float32)
    third = float(model.weight.detach()[0, 1])
    outputs = exact_outputs(model, [x, out], 0)
    assert outputs is not None
    assert outputs[0].dtype is torch.float64
    assert outputs[0].tolist() == [[1 + 2 * third], [3 - 4 * third]]
    assert x.dtype is torch.float32
    assert torch.get_default_dtype() is torch.float32


def test_a_weight_of_another_dtype_says_its_own() -> None:
    assert exact_outputs(Asking(torch.float16), [torch.ones(2, 2), torch.zeros(2, 1)], 0) is None


def test_what_does_not_run_without_casts_either_has_no_exact_result() -> None:
    class Single(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            assert x.element_size() == 4
            return x

    assert exact_outputs(Single(), [torch.ones(2)], 0) is None
    assert torch.get_default_dtype() is torch.float32


class Rounding(nn.Module):
    """A chain of bfloat16 that begins with a cast, and a buffer that counts calls; `strict`: which refuses other dtypes."""

    def __init__(self, strict: bool) -> None:
        super().__init__()
        self.strict = strict
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        y = x.bfloat16()
        if self.strict and y.is_floating_point() and y.element_size() == 8:
            raise TypeError("float64")
        for _ in range(4):
            y = y * 1.1 - y * y * 0.01
        return y


def test_what_a_text_rounds_after_its_own_cast_is_its_own_error() -> None:
    x = torch.linspace(0.1, 2.0, 1000)
    model = Rounding(strict=False)
    outputs = exact_outputs(model, [x], 0)
    assert outputs is not None and outputs[0].dtype is torch.float64 and float(model.calls) == 1.0
    apart = (outputs[0] - Rounding(strict=False)(x).double()).norm() / outputs[0].norm()
    assert 1e-3 < float(apart) < 1e-2


def test_who_does_not_run_without_casts_keeps_them() -> None:
    model = Rounding(strict=True)
    outputs = exact_outputs(model, [torch.linspace(0.1, 2.0, 1000)], 0)
    assert outputs is not None and outputs[0].dtype is torch.bfloat16
    assert float(model.calls) == 1.0, "state is as that call leaves it"


@pytest.mark.parametrize("line", ["", "torch.backends.cudnn.benchmark = True", "torch.set_default_device('cuda')", "# cuda"])
def test_what_forward_makes_is_wide_in_a_file_that_has_surroundings(line: str) -> None:
    """Such a file's calls have its default dtypes, and a call that is widened has float64 in their place."""
    text = f"""
import torch
{line}
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.zeros(4, 4) @ x + x
def get_inputs():
    return [torch.rand(4, 4)]
"""
    reference = load_reference(text, small=False)
    outputs = exact_outputs(reference.model(0), reference.inputs(0), 0)
    assert outputs is not None and outputs[0].dtype is torch.float64
    assert torch.get_default_dtype() is torch.float32
