"""What tf32 makes of a reference, and that no coarser rounding passes for it."""

from __future__ import annotations

import copy
import itertools
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from rlkernel.evaluator.judging.errors.comparison import compare_tensor
from rlkernel.evaluator.judging.errors.own_error import CORES_CAP, NEAREST_FACTOR, OwnError, own_error
from rlkernel.evaluator.judging.errors.tensor_cores import (
    OTHERWISE,
    Rounding,
    balance_of,
    cores_of,
    half,
    halved,
    nearest,
    nearest_otherwise,
    rounded_outputs,
    truncated,
)
from rlkernel.evaluator.judging.errors.tolerance import tolerance
from rlkernel.evaluator.judging.references.reference_calls import balance_state, balanced, call, exact_of_copy, state_of
from rlkernel.evaluator.messages.judgement import Balance, Tolerance
from rlkernel.evaluator.program.folding import OUT_OF_RANGE
from rlkernel.types import Precision


class Product(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b


class Chain(nn.Module):
    """Linear layers behind one another."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(*(nn.Linear(width, width) for _ in range(layers)))

    def forward(self, x: torch.Tensor) -> Any:
        return self.layers(x)


class Convolution(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, 24, 3)

    def forward(self, x: torch.Tensor) -> Any:
        return torch.relu(self.conv(x))


class Normed(nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        return nn.functional.layer_norm(torch.exp(x).cumsum(-1), x.shape[-1:]).softmax(-1)


def bfloat16(values: torch.Tensor) -> torch.Tensor:
    return values.to(torch.bfloat16).to(torch.float64)


def draw(kind: str, *shape: int) -> torch.Tensor:
    values = torch.randn(*shape)
    if kind == "uniform":
        return torch.rand(*shape) - 0.5
    return values.exp() * torch.randn(*shape).sign() if kind == "heavy" else values * 1e3 if kind == "large" else values


def own_of(model: nn.Module, inputs: list[Any], precision: Precision = Precision.PYTORCH) -> tuple[torch.Tensor, OwnError]:
    """The exact output, and the reference's own error."""
    found = call(model, inputs, 0)
    cores, _ = cores_of(partial(exact_of_copy, model, inputs, 0), [found], precision)
    exact = exact_of_copy(model, inputs, 0)
    assert exact is not None
    return exact[0], own_error(found, exact[0], None, None if cores is None else cores[0])


def accepts(model: nn.Module, inputs: list[Any], rounding: Rounding, precision: Precision = Precision.PYTORCH) -> bool:
    """Whether a candidate that rounds the operands of products so is right."""
    exact, own = own_of(model, inputs, precision)
    (given,) = rounded_outputs(partial(exact_of_copy, model, inputs, 0), rounding) or [exact]
    allowed, reference = tolerance(torch.float32, own, precision), exact.float()
    return compare_tensor(given.float(), reference, exact, allowed=allowed, overlapping=False, where="output").matches


def test_roundings_by_hand() -> None:
    # 10 bits: between 1 and 2 neighbours are 2^-10 apart
    values = torch.tensor([1 + 2.0**-11, 1 + 2.0**-11 - 2.0**-30, -(1 + 2.0**-11), 3e38], dtype=torch.float64)
    assert nearest(values)[:3].tolist() == [1 + 2.0**-10, 1.0, -(1 + 2.0**-10)]
    assert truncated(values)[:3].tolist() == [1.0, 1.0, -1.0]
    assert float(nearest(values)[3]) == pytest.approx(3e38, rel=2.0**-11), "tf32 has float32's range"
    assert half(torch.tensor([7e4, 1e-8], dtype=torch.float64)).tolist() == [float("inf"), 0.0]
    assert torch.equal(
        nearest(torch.tensor([float("inf")], dtype=torch.float64)), torch.tensor([float("inf")], dtype=torch.float64)
    )


@settings(max_examples=12)
@given(st.integers(16, 8192), st.sampled_from(["normal", "uniform", "heavy", "large"]), st.integers(0, 2**31))
def test_tf32_is_right_and_bfloat16_is_wrong_whatever_the_size_and_the_distribution(width: int, kind: str, seed: int) -> None:
    torch.manual_seed(seed)
    inputs = [draw(kind, 48, width), draw(kind, width, 40)]
    assert accepts(Product(), inputs, nearest) and accepts(Product(), inputs, truncated)
    assert not accepts(Product(), inputs, bfloat16)
    assert not accepts(Product(), inputs, nearest, Precision.STRICT)


@settings(max_examples=8)
@given(st.integers(16, 256), st.integers(1, 4), st.integers(0, 2**31))
def test_the_same_of_chains_and_of_convolutions(width: int, layers: int, seed: int) -> None:
    torch.manual_seed(seed)
    for model, x in ((Chain(width, layers), torch.randn(96, width)), (Convolution(width), torch.randn(2, width, 9, 9))):
        assert accepts(model, [x], nearest) and accepts(model, [x], truncated)
        assert not accepts(model, [x], bfloat16)


def test_of_several_roundings_the_worst_counts() -> None:
    """All are within half a step of tf32, 2^-11 of a number, and seldom go the same way."""
    values = torch.rand(4096, dtype=torch.float64) + 1.0
    ways = [nearest(values), *(nearest_otherwise(factor)(values) for factor in OTHERWISE)]
    assert all(((way - values).abs() / values).amax() < 2.0**-11 + 2.0**-20 for way in ways)
    assert all((one != other).double().mean() > 0.5 for one, other in itertools.combinations(ways, 2))
    x, w = torch.randn(40, 24), torch.randn(24, 16)
    found = [x @ w]
    cores, _ = cores_of(partial(exact_of_copy, Product(), [x, w], 0), found, Precision.PYTORCH, several=True)
    assert cores is not None and len(cores[0].nearest) == 4
    exact = x.double() @ w.double()
    sizes = [float((way - exact).norm() / exact.norm()) for way in cores[0].nearest]
    own = own_error(found[0], exact, None, replace(cores[0], cut=cores[0].nearest[0]))
    assert own.cores == pytest.approx(NEAREST_FACTOR * max(sizes), rel=1e-3)


def test_a_reference_without_products_allows_no_more_than_in_strict() -> None:
    x = torch.randn(32, 64)
    cores, exact = cores_of(partial(exact_of_copy, Normed(), [x], 0), [Normed()(x)], Precision.PYTORCH)
    assert cores is None and exact is not None
    assert torch.equal(exact[0], Normed()(x.double())), "nothing was rounded"
    own = own_of(Normed(), [x])[1]
    assert tolerance(torch.float32, own, Precision.PYTORCH) == tolerance(torch.float32, own, Precision.STRICT)


def test_what_tf32_adds_has_a_cap_and_is_less_than_the_output_varies_by() -> None:
    """Zeros and constants stay wrong, however ill-conditioned the reference is."""
    floor = Tolerance(5e-5, 1e-3)
    assert tolerance(torch.float32, OwnError(cores=1.1 * CORES_CAP), Precision.PYTORCH) == Tolerance(CORES_CAP, 1e-3)
    assert tolerance(torch.float32, OwnError(cores=0.31), Precision.PYTORCH) == floor, "tf32 gives another answer altogether"
    assert tolerance(torch.float32, OwnError(cores=0.01, cores_element=0.5), Precision.PYTORCH) == Tolerance(0.01, 0.4)
    assert tolerance(torch.float32, OwnError(cores=0.01, cores_element=0.02), Precision.PYTORCH) == Tolerance(0.01, 0.02)
    near = OwnError(cores=1e-3, spread=2e-3)  # a constant misses by 2e-3; tf32 by half of that, and a quarter is allowed
    assert tolerance(torch.float32, near, Precision.PYTORCH) == Tolerance(5e-4, 1e-3)
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        own = OwnError(cores=0.0)
        assert tolerance(dtype, own, Precision.PYTORCH) == tolerance(dtype, own, Precision.STRICT)


def test_state_that_is_made_of_products_may_miss_by_what_tf32_makes_of_it() -> None:
    """The mean of 512 products of positive numbers is too small by 0.07 % where operands are cut off."""

    class Projected(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm1d(16)

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            made: torch.Tensor = self.norm(x @ y)
            return made

    torch.manual_seed(0)
    model, inputs, name = Projected(), [torch.rand(64, 512), torch.rand(512, 16)], "norm.running_mean"
    exact = partial(exact_of_copy, copy.deepcopy(model), inputs, 0, [name])
    found = [call(model, inputs, 0), state_of(model)[name]]
    cores, _ = cores_of(exact, found, Precision.PYTORCH)
    plain, cut = exact(), rounded_outputs(exact, truncated)
    assert cores is not None and plain is not None and cut is not None
    missed = float((cut[1] - found[1]).norm() / found[1].norm())
    assert 5e-4 < missed < 9e-4
    allowed = tolerance(torch.float32, own_error(found[1], plain[1], None, cores[1]), Precision.PYTORCH)
    assert missed < allowed.norm + allowed.shrink < 2 * missed
    assert cores_of(exact, found, Precision.STRICT) == (None, None)
    strict = own_error(found[1], plain[1])
    assert tolerance(torch.float32, strict, Precision.STRICT).norm < 0.2 * missed


def test_a_difference_of_nearly_equal_products_allows_nothing() -> None:
    class Cancelling(nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return a @ b - (a * (1 + 1e-4)) @ b

    exact, own = own_of(Cancelling(), [torch.randn(32, 64), torch.randn(64, 48)])
    assert own.blurred, "tf32 has nothing left of it"
    allowed = tolerance(torch.float32, own, Precision.PYTORCH)
    for wrong in (torch.zeros_like(exact), exact.mean().expand_as(exact).clone()):
        assert not compare_tensor(wrong.float(), exact.float(), exact, allowed=allowed, overlapping=False, where="o").matches


def test_a_balance_leaves_products_as_they_are_and_half_precision_nothing() -> None:
    torch.manual_seed(0)
    model, inputs = Chain(32, 2), [torch.randn(8, 32)]
    balance = balance_of(model, inputs, 0)
    assert balance == Balance({0: 1 / OUT_OF_RANGE}, {"layers.0.weight": OUT_OF_RANGE}), "the second layer gets no input"
    other = copy.deepcopy(model)
    balance_state(other, balance)
    led = balanced(inputs, balance)
    assert torch.equal(call(other, led, 0), call(model, inputs, 0)), "powers of two change no rounding"
    limit = [tolerance(torch.float32, own_of(model, inputs)[1], Precision.PYTORCH)]
    assert halved(partial(exact_of_copy, other, led, 0), [call(other, led, 0)], limit)
    exact = partial(exact_of_copy, model, inputs, 0)
    assert not halved(exact, [call(model, inputs, 0)], limit), "in its range half precision is as exact as tf32"


def test_what_is_not_multiplied_as_it_is_has_no_balance() -> None:
    x = torch.randn(8, 8)
    assert balance_of(Product(), [x, x.t()], 0) == Balance({0: 1 / OUT_OF_RANGE, 1: OUT_OF_RANGE}, {}), (
        "two arguments, two copies"
    )
    assert balance_of(Normed(), [x], 0) is None
    assert balance_of(Product(), [(x > 0).float(), x.t()], 0) is None, "truth values stay so"


def test_a_product_into_memory_of_the_caller_allows_what_any_product_does() -> None:
    class Into(nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
            torch.mm(a, b, out=out)
            return out

    torch.manual_seed(0)
    a, b = torch.randn(64, 256), torch.randn(256, 32)
    _, plain = own_of(Product(), [a, b])
    _, into = own_of(Into(), [a, b, torch.full((64, 32), 7.0)])
    assert into.cores == plain.cores and 1e-4 < into.cores < 1e-3


@pytest.mark.parametrize("name", ["attention", "lstm", "einsum", "bilinear"])
def test_products_inside_of_other_operators_are_seen(name: str) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.bilinear = nn.LSTM(16, 16), nn.Bilinear(16, 16, 4)

        def forward(self, x: torch.Tensor) -> Any:
            if name == "attention":
                return nn.functional.scaled_dot_product_attention(x, x, x)
            if name == "einsum":
                return torch.einsum("abc,abd->acd", x, x)
            return self.lstm(x)[0] if name == "lstm" else self.bilinear(x, x)

    torch.manual_seed(0)
    _, own = own_of(Model(), [torch.randn(3, 8, 16)])
    assert 1e-4 < own.cores < 1e-2


def test_a_long_sum_of_positive_products_may_be_too_small_as_a_whole_and_not_otherwise() -> None:
    """Cutting off after 10 bits loses u / m of 2^-10, where u is uniform in [0, 1) and m the mantissa in [1, 2): on average
    2^-10 / 2 * ln 2 = 0.034 % of each operand, 0.068 % of a product. Outputs vary by 0.88 / sqrt(2^18) = 0.17 %."""
    torch.manual_seed(0)
    model, inputs = Product(), [torch.rand(24, 1 << 18), torch.rand(1 << 18, 24)]
    exact, own = own_of(model, inputs)
    limit = tolerance(torch.float32, own, Precision.PYTORCH)
    assert own.spread == pytest.approx(0.0017, rel=0.2)
    assert own.shrink == pytest.approx(1.25 * 0.00068, rel=0.05) and own.shrunk and not own.blurred
    assert limit.shrink == own.shrink and limit.norm == pytest.approx(5e-5)
    cut = rounded_outputs(partial(exact_of_copy, model, inputs, 0), truncated)
    assert cut is not None
    reference = exact.float()

    def accepted(found: torch.Tensor) -> bool:
        return compare_tensor(found.float(), reference, exact, allowed=limit, overlapping=False, where="output").matches

    assert accepted(cut[0]) and accepted((cut[0] + exact) / 2) and accepted(exact)
    assert not accepted(exact.mean().expand_as(exact).contiguous()), "the mean alone"
    assert not accepted(0.99932 * exact.mean().expand_as(exact).contiguous())
    assert not accepted(0.998 * exact) and not accepted(1.0007 * exact)
    mixed = exact.clone()
    mixed[:12] = cut[0][:12]
    assert not accepted(mixed), "a factor that only half of the values have"
    strict = tolerance(torch.float32, own, Precision.STRICT)
    assert strict.shrink == 0.0


@pytest.mark.parametrize("width", [64, 1024, 1 << 14, 1 << 16])
def test_tf32_is_right_for_positive_operands_whatever_the_size(width: int) -> None:
    torch.manual_seed(width)
    inputs = [torch.rand(24, width), torch.rand(width, 24)]
    assert accepts(Product(), inputs, nearest) and accepts(Product(), inputs, truncated)
