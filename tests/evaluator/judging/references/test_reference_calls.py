"""Other weights and inputs than a problem's author draws, for both sides alike."""

from __future__ import annotations

import torch
from torch import nn

from rlkernel.evaluator.judging.references.reference_calls import (
    as_reference,
    constants,
    hand_over,
    held_as,
    perturb,
    state_of,
)


def test_constant_parameters_and_buffers_get_other_values_and_random_ones_keep_theirs() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8))
    model.register_buffer("mask", torch.full((8,), -1e9))
    before = {name: tensor.clone() for name, tensor in state_of(model).items()}
    perturb(model, 7, constants(model))
    after = state_of(model)
    moved = {name for name in after if not torch.equal(before[name], after[name])}
    assert moved == {"1.weight", "1.bias", "1.running_mean", "1.running_var"}
    for name in ("1.weight", "1.running_var"):
        assert bool(((after[name] >= 0.5) & (after[name] <= 1.5)).all())
    for name in ("1.bias", "1.running_mean"):
        assert bool((after[name].abs() <= 0.5).all())
    again = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8))
    perturb(again, 7, constants(again))
    assert torch.equal(state_of(again)["1.weight"], after["1.weight"]), "the seed decides"


def test_trained_rows_that_repeat_one_another_get_other_values_each() -> None:
    """They begin alike and are trained apart; a draw has no such rows, and frozen ones stay."""
    model = nn.Module()
    model.repeated = nn.Parameter(torch.arange(1.0, 5.0).repeat(8, 1))
    model.drawn = nn.Parameter(torch.randn(8, 4))
    model.ordered = nn.Parameter(torch.arange(8.0))
    model.frozen = nn.Parameter(torch.arange(1.0, 5.0).repeat(8, 1), requires_grad=False)
    assert list(constants(model)) == ["repeated"]
    perturb(model, 1, ["repeated"])
    assert all(len(set(column.tolist())) == 8 for column in model.repeated.T)


def test_little_constants_that_are_trained_get_values_that_show() -> None:
    """The scale of a residual branch, 1e-6, lies within every bound; what is not trained may be an eps."""
    model = nn.Module()
    for name, value in {"scale": 1e-6, "shift": -1e-3, "tenth": 0.1, "one": 1.0}.items():
        model.register_parameter(name, nn.Parameter(torch.full((64,), value)))
    model.register_buffer("eps", torch.full((64,), 1e-6))
    perturb(model, 7, constants(model))
    state = state_of(model)
    for name, low, high in (("scale", 0.25, 0.75), ("shift", -0.75, -0.25), ("tenth", 0.05, 0.15), ("eps", 5e-7, 1.5e-6)):
        assert low <= float(state[name].min()) < float(state[name].max()) <= high


def test_state_is_matched_by_name_then_by_shape_in_order() -> None:
    own = {"weight": torch.zeros(2), "gamma": torch.zeros(3), "beta": torch.zeros(3), "extra": torch.zeros(4)}
    given = {"weight": torch.ones(2), "norm.weight": torch.full((3,), 2.0), "norm.bias": torch.full((3,), 3.0)}
    assert hand_over(own, given) == {"weight": "weight", "norm.weight": "gamma", "norm.bias": "beta"}
    assert [float(t[0]) for t in own.values()] == [1.0, 2.0, 3.0, 0.0]


def test_a_buffer_whose_elements_are_one_in_memory_is_perturbed_as_one() -> None:
    model = nn.Module()
    model.register_buffer("bias", torch.zeros(1).expand(5))
    perturb(model, 7, constants(model))
    bias = state_of(model)["bias"]
    assert bias.stride() == (0,) and 0 < abs(float(bias[0])) <= 0.5


def test_state_under_another_name_is_that_of_its_shape_and_place() -> None:
    reference = {"bn.weight": torch.ones(3), "bn.running_mean": torch.zeros(3), "count": torch.tensor(0), "w": torch.ones(2)}
    own = {"gamma": torch.ones(3), "running_mean": torch.full((3,), 5.0), "w": torch.ones(2)}
    names = held_as(own, reference)
    assert names == {"w": "w", "bn.weight": "gamma", "bn.running_mean": "running_mean"}
    assert as_reference(own, names)["bn.running_mean"] is own["running_mean"]
    later = own | {"bn.running_mean": torch.full((3,), 7.0)}  # which forward has made
    assert as_reference(later, names)["bn.running_mean"] is later["bn.running_mean"]
    assert held_as({"mean": torch.zeros(3)}, reference) == {}, "one of three: nobody knows which"


def test_a_name_of_both_sides_with_another_shape_is_nobody_elses_state() -> None:
    own = {"mean": torch.zeros(2), "other": torch.zeros(3)}
    reference = {"mean": torch.ones(3), "scale": torch.full((2,), 2.0)}
    assert hand_over(own, reference) == {}
    assert [float(t.sum()) for t in own.values()] == [0.0, 0.0]
