"""Bfloat16 weights move as float32 ones do, resume exactly, and take the bytes that are said."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
import torch

from rlkernel.training.eight_bit_adamw import (
    BFLOAT16_BITS,
    BLOCK,
    EightBitAdamW,
    clip_gradients,
    rounded_at_random,
    state_bytes,
)

RATE, UPDATES = 1e-6, 200


def movement(start: torch.Tensor, mean: torch.Tensor, make: Callable[[Any], torch.optim.Optimizer]) -> torch.Tensor:
    """What `UPDATES` updates by gradients around `mean`, the same each time, add to weights; in the weights' own format."""
    parameter = torch.nn.Parameter(start.clone())
    optimiser = make([parameter])
    generator = torch.Generator().manual_seed(1)
    for _ in range(UPDATES):
        parameter.grad = (mean + torch.randn(mean.shape, generator=generator).to(mean.device)).to(start.dtype)
        optimiser.step()
    return parameter.detach().float() - start.float()


def test_small_updates_move_bfloat16_weights_as_float32_ones() -> None:
    generator = torch.Generator().manual_seed(0)
    # 0.02 is what models are initialised with. There, bfloat16's neighbours are 2^-13 = 1.2e-4 apart: 122 times the rate.
    start = (torch.randn(128, 256, generator=generator) * 0.02).bfloat16()
    mean = torch.randn(128, 256, generator=generator)

    def adamw(parameters: Any) -> torch.optim.Optimizer:
        return torch.optim.AdamW(parameters, lr=RATE, weight_decay=0.0)

    exact = movement(start.float(), mean, adamw)
    nearest = movement(start, mean, adamw)
    random = movement(start, mean, lambda parameters: EightBitAdamW(parameters, lr=RATE, seed=3))

    def along(moved: torch.Tensor) -> float:
        """The part of the exact movement that was made; 1 is all of it."""
        return float((moved * exact).sum() / exact.square().sum())

    # Rounded to the nearest, 98 % of the weights never move: only the smallest have neighbours that are near enough.
    assert float((nearest != 0).float().mean()) < 0.03
    assert along(nearest) < 0.03
    assert along(random) == pytest.approx(1.0, abs=0.05)
    # Of a single weight, the rounding is noise: with a steady update u and neighbours d apart its variance is 200 u (d - u), here
    # as much as half of the movement's square. So a cosine of 0.75 and a norm of 1.3, and of 64 weights together 0.99.
    assert float(torch.cosine_similarity(random.flatten(), exact.flatten(), 0)) == pytest.approx(0.76, abs=0.04)
    assert float(random.norm() / exact.norm()) == pytest.approx(1.32, abs=0.08)
    sign = mean.sign()
    together, wanted = ((sign * moved).view(-1, 64).mean(1) for moved in (random, exact))
    assert float(torch.cosine_similarity(together, wanted, 0)) > 0.985


def test_rounding_at_random_is_right_in_the_mean() -> None:
    # 1 + 2^-7 is the next bfloat16 after 1; a quarter of the way goes up in a quarter of the cases.
    values = torch.full((40_000,), 1 + 2.0**-9)
    rounded = rounded_at_random(values, BFLOAT16_BITS, torch.Generator().manual_seed(0))
    assert rounded.unique().tolist() == [1.0, 1 + 2.0**-7]
    # The standard deviation of the share is sqrt(0.25 * 0.75 / 40000) = 0.0022.
    assert float((rounded > 1).float().mean()) == pytest.approx(0.25, abs=0.009)
    assert torch.equal(rounded, rounded.bfloat16().float())
    assert torch.equal(-rounded, rounded_at_random(-values, BFLOAT16_BITS, torch.Generator().manual_seed(0)))


def test_steps_come_to_the_bottom_of_a_bowl_in_every_shape() -> None:
    """70 values are less than a block, 3 x 300 more than three."""
    for shape in ((70,), (3, 300)):
        generator = torch.Generator().manual_seed(0)
        goal = torch.rand(shape, generator=generator) * 2 - 1
        weight = torch.nn.Parameter(torch.zeros(shape, dtype=torch.bfloat16))
        optimiser = EightBitAdamW([weight], lr=0.02, seed=0)
        for _ in range(300):
            weight.grad = weight.detach() - goal.bfloat16()
            optimiser.step()
        assert float((weight.detach().float() - goal).abs().max()) < 0.05


def test_a_second_moment_decays_although_a_step_changes_a_thousandth_of_it() -> None:
    weight = torch.nn.Parameter(torch.zeros(2 * BLOCK, dtype=torch.bfloat16))
    optimiser = EightBitAdamW([weight], lr=0.0, seed=0)
    for step in range(1200):
        weight.grad = torch.full_like(weight, 1.0 if step < 200 else 0.0)
        # The largest of each block keeps its scale, so that nothing but rounding can let the others decay.
        weight.grad[::BLOCK] = 1.0
        optimiser.step()
    root = optimiser.state[weight]["root"].float().view(2, BLOCK) * optimiser.state[weight]["root_scale"][:, None]
    # (1 - 0.999^200) * 0.999^1000 = 0.0666, of which the root is 0.258.
    assert float(root[:, 1:].square().mean()) == pytest.approx(0.0666, rel=0.15)


def make(seed: int) -> tuple[list[torch.nn.Parameter], EightBitAdamW]:
    generator = torch.Generator().manual_seed(5)
    parameters = [torch.nn.Parameter(torch.randn(shape, generator=generator).bfloat16()) for shape in ((20, 30), (7,))]
    groups = [{"params": parameters[:1], "weight_decay": 0.1}, {"params": parameters[1:]}]
    return parameters, EightBitAdamW(groups, lr=1e-3, seed=seed)


def steps(parameters: list[torch.nn.Parameter], optimiser: EightBitAdamW, which: range) -> None:
    for step in which:
        for parameter in parameters:
            parameter.grad = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(step)).bfloat16()
        optimiser.step()


def test_what_is_loaded_goes_on_to_the_same_bytes() -> None:
    whole, optimiser = make(seed=1)
    steps(whole, optimiser, range(8))
    first, before = make(seed=1)
    steps(first, before, range(5))
    file = io.BytesIO()
    torch.save(before.state_dict(), file)
    file.seek(0)
    resumed, after = make(seed=1)
    after.load_state_dict(torch.load(file, weights_only=True))
    for parameter, kept in zip(resumed, first, strict=True):
        parameter.data.copy_(kept.data)
    torch.rand(3)  # torch's own generator has no part in it
    steps(resumed, after, range(5, 8))
    other, third = make(seed=2)
    steps(other, third, range(8))
    for a, b, c in zip(whole, resumed, other, strict=True):
        assert torch.equal(a, b)
        assert not torch.equal(a, c)
        for name, value in optimiser.state[a].items():
            mine = after.state[b][name]
            assert value == mine if name == "step" else torch.equal(value.view(torch.uint8), mine.view(torch.uint8)), name


def test_a_step_takes_the_gradients_away_and_its_state_has_the_bytes_that_are_said() -> None:
    parameters, optimiser = make(seed=0)
    steps(parameters, optimiser, range(1))
    for parameter in parameters:
        assert parameter.grad is None
        tensors = [value for value in optimiser.state[parameter].values() if torch.is_tensor(value)]
        assert sum(tensor.nbytes for tensor in tensors) == state_bytes(parameter.numel())
    before = [parameter.detach().clone() for parameter in parameters]
    optimiser.step()  # without gradients nothing moves, by momentum neither
    assert all(torch.equal(a, b) for a, b in zip(before, parameters, strict=True))


def test_other_formats_are_refused() -> None:
    with pytest.raises(ValueError, match=r"a parameter is torch\.float32"):
        EightBitAdamW([torch.nn.Parameter(torch.zeros(3))], lr=1.0)


def test_gradients_are_clipped_by_a_norm_in_float32() -> None:
    parameters, _ = make(seed=0)
    assert float(clip_gradients(parameters, 1.0)) == 0.0
    parameters[0].grad = torch.full((20, 30), 0.1).bfloat16()
    parameters[1].grad = torch.full((7,), 2.0).bfloat16()
    # bfloat16 has 0.10009765625 for 0.1: sqrt(600 * 0.1001^2 + 7 * 4) = 5.833.
    assert float(clip_gradients(parameters, float("inf"))) == pytest.approx(5.8321, abs=1e-3)
    assert float(parameters[1].grad[0]) == 2.0
    clip_gradients(parameters, 1.0)
    assert float(clip_gradients(parameters, 1.0)) == pytest.approx(1.0, abs=4e-3)
