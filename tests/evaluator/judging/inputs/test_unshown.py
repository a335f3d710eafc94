"""Operators whose effect no draw shows: what was never seen, and what shows it."""

from __future__ import annotations

import math

import pytest
import torch

from rlkernel.evaluator.judging.drawing import draw_rounds
from rlkernel.evaluator.judging.inputs.sowing import SHARE, planted
from rlkernel.evaluator.judging.inputs.unshown import Among, plants_of
from rlkernel.evaluator.messages.judgement import Moved, Plant, Resized
from rlkernel.reference import Reference, load_reference
from rlkernel.types import Precision

SOURCE = """
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

class Model(nn.Module):
    def forward(self, x, label):
        return {answer}

def get_inputs():
    return [torch.randn(64, 32), torch.randint(0, 32, (64,))]

def get_init_inputs():
    return []
"""
NAN, INFINITE = (math.nan,), (math.inf, -math.inf)


def reference(answer: str) -> Reference:
    return load_reference(SOURCE.format(answer=answer), small=False)


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("x.clamp(-1, 1)", []),
        ("x.clamp(max=200) + 1", [(0, (256.0, -256.0), False)]),
        ("F.relu(x - 100) + x", [(0, (128.0, -128.0), False)]),
        ("x / (x.norm() / 5000).clamp(min=1)", [(0, (512.0, -512.0), False)]),  # which is one for what is drawn
        ("x / torch.maximum(x.norm(dim=1, keepdim=True) / 300, torch.tensor(1.0))", [(0, (128.0, -128.0), False)]),
        ("x / (x.norm() / 20).clamp(min=1)", []),  # and here never
        ("F.hardtanh(x, -300.0, 300.0)", [(0, (512.0, -512.0), False)]),
        ("torch.where(x > 50, x * x, x)", [(0, (64.0, -64.0), False), (0, (50.0,), False)]),
        ("torch.where(x > math.nan, 1.0, x)", []),  # nothing is
        ("sum(F.relu(x * x + i) for i in range(4)) + (x + 0).clamp(max=200)", [(0, (256.0, -256.0), False)]),  # in few calls
        ("sum(F.leaky_relu(x * x + i) for i in range(5)) + x.clamp(max=200)", [(0, (256.0, -256.0), False)]),  # these come last
        ("sum(F.normalize(x * x + i) for i in range(1, 6)) + x.clamp(max=200)", [(0, (256.0, -256.0), False)]),
        ("F.relu(x * x)", []),  # nothing shows what is below zero
        ("x / x.norm(dim=1, keepdim=True).clamp(min=1e-12)", [(0, (0.0,), True)]),
        ("x.nan_to_num(nan=0.5)", [(0, NAN, False)]),
        ("x.nan_to_num(nan=0.5, posinf=1.0)", [(0, INFINITE, False), (0, NAN, False)]),
        ("x.softmax(1).nan_to_num(nan=0.5)", []),  # it is no input whose NaN is replaced
        ("x.nanmean(1) + x.nansum()", [(0, NAN, False)]),
        ("torch.where(x != x, 0.0, x)", [(0, NAN, False)]),
        ("(x.abs().log() * label.bool()[:, None] / label.bool()[:, None]).nan_to_num(nan=0.5)", []),  # some labels are zero
        ("(x / (label + 1)[:, None] * (label + 1)[:, None]).nan_to_num(nan=0.5)", []),  # no label makes NaN
        ("(x * 0 / (label - 40)[:, None].clamp(min=-30)).nan_to_num(nan=0.5)", []),
        ("torch.where(x == 0, 1.0, x.sin() / x)", [(0, (0.0,), False)]),
        ("F.cross_entropy(x, label, ignore_index=-1, reduction='sum')", [(1, (-1.0,), False)]),
        ("F.cross_entropy(x, label, reduction='sum')", []),  # nobody has said so
        ("F.cross_entropy(x, label, label_smoothing=0.1)", []),  # in which torch compares with it
        ("x * (label != -100)[:, None]", [(1, (-100.0,), False)]),
        ("x[label == 1000].sum() + x", [(1, (1000.0,), False)]),
        ("x.gather(1, label[:, None]) * (label != 1000)[:, None]", []),  # such a place there is not
        ("x * (label >= 0)[:, None]", [(1, (-1.0,), False)]),
        ("x * (label < 32)[:, None]", [(1, (33.0,), False)]),
        ("torch.minimum(x, torch.full_like(x, 200.0))", [(0, (256.0, -256.0), False)]),
        ("torch.maximum(torch.tensor(-200.0, device=x.device), x)", [(0, (256.0, -256.0), False)]),
        ("torch.maximum(x, x.flip(0)) + torch.minimum(x, torch.tensor(0.5))", []),  # some numbers are on either side
        ("x * (x * 3).int().clamp(max=1000)", [(0, (512.0, -512.0), False)]),  # whole numbers that are made of an input
        ("torch.where((x > 90) & (x < 92), -x, x)", [(0, (128.0, -128.0), False), (0, (91.0,), False), (0, (90.0,), False)]),
        ("torch.where((x > -1) & (x < 1), -x, x)", [(0, (-1.0,), False), (0, (1.0,), False)]),  # between these are some
        ("F.softplus(x.abs() * 0.12, threshold=8)", [(0, (68.0, -68.0), False)]),
        ("F.softplus(x)", []),  # behind twenty nobody tells it from a straight line
        ("F.softshrink(x, 100.0) + x", [(0, (128.0, -128.0), False)]),
        ("F.hardswish(x) + F.elu(x) + F.leaky_relu(x)", []),
        ("F.hardsigmoid(x * 0.01)", [(0, (512.0, -512.0), False)]),
        ("F.huber_loss(x, x.flip(0), delta=100.0)", [(0, (64.0, -64.0), False)]),
        ("x * (x.abs() < 1e-4)", [(0, (0.0,), True)]),
        ("torch.where((-x.abs()).exp() < 2e-3, 0.0, x)", []),  # eight times as large shows it
        ("torch.where((-x.abs() * 0.05).exp() < 2e-3, 0.0, x)", [(0, (128.0, -128.0), False)]),
        ("x + label.clamp(min=0)[:, None]", [(1, (-1.0,), False)]),
        ("x + label.abs()[:, None]", [(1, (-1.0,), False)]),
        ("F.relu(label.float())[:, None] + x", []),  # it is no input that is rectified
        ("x.gather(1, label[:, None]) * (label >= 0)[:, None]", []),  # such a place there is not
        ("torch.where(x >= 0.5, x, 0.0)", [(0, (0.5,), False)]),
        ("x < 2, x * (x <= 0)", [(0, (2.0,), False)]),  # and what is multiplied by zero may be on either side
        ("torch.where(x > 0.1, x, 0.0)", []),  # which float32 does not hold
        ("torch.where(x > 0, x, 0.1 * x)", []),  # it is zero either way
        ("torch.where(x + 1 > 0, x, 0.0)", []),  # it is no input that is compared
        ("torch.bucketize(x, torch.linspace(-1, 1, 5, device=x.device)).float()", [(0, (0.0,), False)]),
        ("x.sign()", [(0, (0.0,), False)]),
        ("x.round()", [(0, (0.5, 1.5, -0.5, -1.5), False)]),
        ("(4 * x).round()", []),  # it is no input that is rounded
        ("F.threshold(x, 0.5, 0.5)", []),  # which is no jump
        ("F.threshold(x, 0.5, 0.0) + F.hardshrink(x, 0.25)", [(0, (0.5,), False), (0, (0.25,), False)]),
        ("torch.sinc(x)", [(0, (0.0,), False)]),
        ("F.kl_div(x, x.abs() + label.float()[:, None], reduction='none')", []),  # what is computed is its target
        ("F.kl_div(x, x, reduction='none').nan_to_num(0.0)", [(0, (0.0,), False)]),
        ("x + torch.searchsorted(torch.arange(4.0, device=x.device), x, side='right')", [(0, (2.0,), False)]),
    ],
)
def test_what_shows_what_no_draw_does(answer: str, found: list[tuple[int, tuple[float, ...], bool]]) -> None:
    made = plants_of(reference(answer), SOURCE.format(answer=answer))
    plants = [one for one in made if isinstance(one, Plant)]
    assert [(one.place, str(one.values), one.along == (-1,)) for one in plants] == [
        (place, str(v), rows) for place, v, rows in found
    ]


@pytest.mark.parametrize(
    ("answer", "along"),
    [
        ("(x * label).sum() / label.sum().clamp(min=1)", (0, 1)),  # a mask of nothing
        ("(x * label).sum(1) / label.sum(1).clamp(min=1e-9)", (-1,)),
        ("torch.where(label.sum(1) > 0, (x * label).sum(1), -1.0)", (-1,)),
        ("(x * label).sum(1) / (label.sum(1) + 1).clamp(min=1)", None),  # which it reaches for no mask
    ],
)
@pytest.mark.parametrize("mask", ["torch.rand(64, 32) < 0.5", "(torch.rand(64, 32) < 0.5).float()"])
def test_a_mask_leaves_nothing_where_a_reference_has_an_answer_for_that(
    answer: str, along: tuple[int, ...] | None, mask: str
) -> None:  # fmt: skip
    source = SOURCE.format(answer=answer).replace("torch.randint(0, 32, (64,))", mask)
    made = plants_of(load_reference(source, small=False), source)
    assert made == (() if along is None else (Plant(1, (0.0,), along=along),))


@pytest.mark.parametrize(("axis", "along"), [(0, -2), (1, -1)])
def test_slices_of_zeros_show_what_is_done_where_nothing_is_computed(axis: int, along: int) -> None:
    answer = f"torch.where(x.abs().amax({axis}) == 0, 0.0, x.sum({axis}) / x.abs().amax({axis}))"
    (plant,) = plants_of(reference(answer), SOURCE.format(answer=answer))
    assert plant == Plant(0, (0.0,), along=(along,))
    inputs = planted([torch.ones(64, 32)], plant, 0)[0]
    emptied = (inputs == 0).all(axis)
    assert 0 < int(emptied.sum()) < emptied.numel() and bool((inputs != 0).all(axis).logical_or(emptied).all())


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("x.masked_fill(label == 0, -math.inf).amax(1).masked_fill((label == 0).all(1), 0.0)", 0.0),
        ("torch.where((label == 2).all(1), 1.0, x.sum(1))", 2.0),  # which half of the labels are above or at
        ("torch.where((label == 2).any(1), 1.0, x.sum(1))", None),  # some rows have none
        ("x * (label == 0).all()", None),  # one answer for all is a branch
        ("x * (label == 50).any(1)[:, None]", None),  # no slice of what is drawn has one
    ],
)
def test_rows_are_padding_alone_where_a_reference_asks_for_that(answer: str, found: float | None) -> None:
    source = SOURCE.format(answer=answer).replace("torch.randint(0, 32, (64,))", "torch.randint(0, 4, (64, 8)).repeat(1, 4)")
    made = plants_of(load_reference(source, small=False), source)
    assert [one for one in made if isinstance(one, Plant) and one.along] == (
        [] if found is None else [Plant(1, (found,), along=(-1,))]
    )


@pytest.mark.parametrize(("drawn", "number"), [("torch.randn(64, 32)", 1.0), ("torch.randint(3, 6, (64, 32))", 4.0)])
def test_slices_of_one_number_that_is_not_zero_show_what_is_done_where_nothing_differs(drawn: str, number: float) -> None:
    """Of zeros, who leaves out the question gives zeros as well."""
    answer = "torch.where(x.amax(1) > x.amin(1), x.sum(1) - x.amin(1), x.sum(1))"
    answer = answer.replace("x.amax(1) > x.amin(1)", "x.amax(1) - x.amin(1) > 0")
    source = SOURCE.format(answer=answer).replace("torch.randn(64, 32)", drawn)
    (plant,) = plants_of(load_reference(source, small=False), source)
    assert plant == Plant(0, (number,), along=(-1,))


@pytest.mark.parametrize(("size", "planted"), [(0.01, True), (2.0, False)])
def test_unknowns_depend_on_many_others_in_a_round(size: float, planted: bool) -> None:
    """The last one's square is 100,000 times the first one's, on average, unless they depend on many as they are drawn."""
    answer = "torch.linalg.solve_triangular(x, label, upper=False)"
    drawn = f"[(torch.randn(32, 32) * {size}).tril(-1) + 2 * torch.eye(32), torch.randn(32, 4)]"
    source = SOURCE.format(answer=answer).replace("[torch.randn(64, 32), torch.randint(0, 32, (64,))]", drawn)
    found = plants_of(load_reference(source, small=False), source)
    number = 2 * (8 * (1e5 ** (1 / 32) - 1)) ** 0.5
    assert [one.values for one in found if isinstance(one, Plant)] == [pytest.approx((number, -number))] * planted


def test_zeros_of_a_triangle_stay_and_its_unknowns_grow_alike_at_each_size() -> None:
    """A kernel may take each unknown out of all rows, where a column has zeros above its diagonal."""
    answer = "torch.linalg.solve_triangular(x, label, upper=False)"
    for size in (16, 64, 256):
        drawn = f"[(torch.randn(64, {size}, {size}) * 1e-3).tril(-1) + 2 * torch.eye({size}), torch.randn(64, {size}, 8)]"
        source = SOURCE.format(answer=answer).replace("[torch.randn(64, 32), torch.randint(0, 32, (64,))]", drawn)
        given = load_reference(source, small=False)
        (plant,) = [one for one in plants_of(given, source) if isinstance(one, Plant)]
        triangle, right = planted(given.inputs(0), plant, 0)
        assert torch.equal(triangle, triangle.tril()) and bool((triangle.diagonal(dim1=1, dim2=2) == 2).all())
        squares = torch.linalg.solve_triangular(triangle.double(), right.double(), upper=False).square().mean((0, 2))
        assert 1e4 < float(squares[-1] / squares[0]) < 1e6


def test_a_limit_on_what_grows_is_shown_where_all_of_an_input_is_smaller() -> None:
    answer = "x * torch.clamp(1.0 / x.norm(), max=1.0)"  # of 2,048 normal numbers the norm is 45
    assert plants_of(reference(answer), SOURCE.format(answer=answer)) == (Resized(0, 2.0**-10),)
    answer += " + sum(F.leaky_relu(x * x + i) + F.normalize(x * x + i + 1) for i in range(5))"  # of which nothing shows a thing
    assert plants_of(reference(answer), SOURCE.format(answer=answer)) == (Resized(0, 2.0**-10),)


def test_a_mask_of_numbers_is_made_no_smaller() -> None:
    source = SOURCE.format(answer="x * label / label.sum().clamp(min=1)")
    source = source.replace("torch.randint(0, 32, (64,))", "(torch.rand(64, 32) > 0.5).float()")
    made = plants_of(load_reference(source, small=False), source)
    assert not any(isinstance(one, Resized) for one in made)


def test_numbers_are_planted_in_one_input_at_places_of_the_seed() -> None:
    given = [torch.ones(64, 32).t(), torch.ones(64, 32)]
    found = planted(given, Plant(0, (3.0, -3.0)), 1)
    assert found[1] is given[1] and found[0].stride() == given[0].stride() and bool((given[0] == 1).all())
    assert set(found[0].unique().tolist()) == {-3.0, 1.0, 3.0}
    put = int((found[0] != 1).sum())
    assert abs(put - SHARE * 2048) < 5 * (SHARE * (1 - SHARE) * 2048) ** 0.5  # five standard deviations
    assert torch.equal(planted(given, Plant(0, (3.0, -3.0)), 1)[0], found[0])
    rows = planted([[given[1]]], Plant(0, (0.0,), along=(-1,)), 2)[0][0]
    assert set((rows == 0).sum(1).tolist()) == {0, 32}
    assert bool((planted([torch.ones(2)], Plant(0, (0.0,)), 3)[0] == 0).any()), "one at least"


@pytest.mark.parametrize(("answer", "more"), [("x.clamp(max=200) + 1", 1), ("x.clamp(max=0.5) + 1", 0)])
def test_such_numbers_are_in_a_round_of_their_own(answer: str, more: int) -> None:
    plants = plants_of(reference(answer), SOURCE.format(answer=answer))
    rounds = [r for some in draw_rounds(reference(answer), Precision.PYTORCH, "key", other=False, plants=plants) for r in some]
    assert len(rounds) == 3 + more
    noted = [one for one in rounds if "numbers among its inputs that an operator is for" in one.expected.note]
    assert len(noted) == more and all(bool((one.inputs[0].abs() > 200).any()) for one in noted)
    assert not any(one.expected.ordinary for one in noted)


def test_several_inputs_of_one_shape_get_numbers_at_the_same_places() -> None:
    x, y, other = planted([torch.randn(64, 8), torch.randn(64, 8), torch.randn(3)], Plant(0, (0.0,), also=(1, 2)), 3)
    assert torch.equal(x == 0, y == 0) and 0 < int((x == 0).sum()) < 200 and bool((other == 0).any())


def test_each_number_is_planted_somewhere() -> None:
    """Numbers take turns, of two places in 16 on average."""
    for seed in range(20):
        (found,) = planted([torch.ones(16)], Plant(0, (3.0, -3.0)), seed)
        put = int((found != 1).sum())
        assert abs(int((found == 3).sum()) - int((found == -3).sum())) == put % 2


def test_a_result_whose_nan_is_replaced_has_some_where_a_length_is_zero_or_a_row_is_masked() -> None:
    within = "x.masked_fill(torch.arange(32) >= {}, -math.inf).softmax(1).nan_to_num(nan=0.5)"
    source = SOURCE.replace("torch.randint(0, 32", "torch.randint(1, 32")
    lengths = load_reference(source.format(answer=within.format("label[:, None]")), small=False)
    assert plants_of(lengths, "") == (Plant(1, (0.0,), along=()),) and not plants_of(lengths, "", among=Among.REAL)
    assert plants_of(lengths, "", among=Among.WHOLE) == (Plant(1, (0.0,), along=()),)
    source = SOURCE.replace("torch.randint(0, 32, (64,))", "torch.rand(64, 32) < 0.5")
    masked = load_reference(source.format(answer="x.masked_fill(~label, -math.inf).softmax(1).nan_to_num(nan=0.5)"), small=False)
    assert plants_of(masked, "") == (Plant(1, (0.0,), along=(-1,)),)
    assert not planted(masked.inputs(0), Plant(1, (0.0,), along=(-1,)), 0)[1].any(1).all()


def test_nothing_is_tried_when_the_time_is_over() -> None:
    """A call at full shape may take seconds, and 24 of them may be tried. The first one, of 64, shows nothing."""
    two = reference("x.clamp(max=200) + torch.where(label[:, None] == 99, 1.0, 0.0)")
    assert len(plants_of(two, "")) == 2
    assert plants_of(two, "", until=0.0) == ()


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("(x * truth).clamp(max=200)", [(0, (256.0, -256.0), False)]),
        ("(x * 0.01 + truth).clamp(max=3)", [(0, (256.0, -256.0), False)]),
        ("torch.where(truth > 0.5, x, -x)", []),  # no truth value is a half
        ("x * truth.clamp(0.05, 0.95)", []),  # nor any that smooths them
        ("torch.where(truth == -1, 0.0, x * truth)", [(1, (-1.0,), False)]),  # but for those that the reference asks for
    ],
)
def test_truth_values_that_are_numbers_stay_so(answer: str, found: list[tuple[int, tuple[float, ...], bool]]) -> None:
    source = SOURCE.replace("label", "truth").replace("torch.randint(0, 32, (64,))", "(torch.rand(64, 32) < 0.5).float()")
    given = load_reference(source.format(answer=answer), small=False)
    assert [(one.place, one.values, one.along == (-1,)) for one in plants_of(given, answer) if isinstance(one, Plant)] == found


@pytest.mark.parametrize(("high", "found"), [(41, []), (43, [(41.0,)])])
def test_whole_numbers_among_which_some_are_planted_stay_whole(high: int, found: list[tuple[float, ...]]) -> None:
    """Between 40 and 41 there is none."""
    answer = f"torch.where((label > 40) & (label < {high}), -x, x)"
    source = SOURCE.format(answer=answer).replace("torch.randint(0, 32, (64,))", "torch.randint(0, 32, (64, 32)).float()")
    made = plants_of(load_reference(source, small=False), source)
    bounds = [(40.0,), (float(high),)]
    assert [one.values for one in made if isinstance(one, Plant) and one.values not in bounds] == found


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("x * self.scale.exp().clamp(max=100)", (Moved(None, "scale", shift=3.0),)),
        ("x / self.scale.clamp(min=0.01)", (Moved(None, "scale", shift=-3.0),)),
        ("x * self.scale.exp().clamp(max=1e30)", ()),
        ("x * self.scale.exp()", ()),
    ],
)
def test_a_limit_on_a_parameter_is_shown_where_it_is_moved(answer: str, found: tuple[Moved, ...]) -> None:
    made = "    def __init__(self):\n        super().__init__()\n        self.scale = nn.Parameter(torch.tensor(2.66))\n\n"
    source = SOURCE.format(answer=answer).replace("    def forward", made + "    def forward")
    assert plants_of(load_reference(source, small=False), source) == found


SEVERAL = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, gradient, square, rate):
        return {answer}

def get_inputs():
    return [torch.randn(64, 32), torch.rand(64, 32), torch.rand(64)]

def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("gradient / ((0.9 * square + gradient * gradient).sqrt() + 1e-8)", (Plant(0, (0.0,), also=(1,)),)),
        ("gradient / (gradient.norm(dim=1) * square.norm(dim=1) + 1e-6)[:, None]", (Plant(0, (0.0,), along=(-1,), also=(1,)),)),
        ("gradient / ((0.9 * square + gradient * gradient).sqrt() + 1.0)", ()),  # this is no guard
        ("gradient / (rate + 1e-8)[:, None]", (Plant(0, (0.0,), along=(-1,), also=(1, 2)),)),  # one number for each row
        ("1e-3 / (square + gradient.abs()) + (square + gradient.abs() + 1e-8)", ()),  # infinity where both are zero
    ],
)
def test_what_is_guarded_is_zero_where_several_inputs_are(answer: str, found: tuple[Plant, ...]) -> None:
    source = SEVERAL.format(answer=answer)
    assert plants_of(load_reference(source, small=False), source) == found


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("mean / (square.sqrt() + 1e-8) + gradient", Plant(0, (0.0,), also=(1,))),  # but the one that is divided
        ("mean / (square.sqrt() + gradient.abs() + 1e-8)", Plant(0, (0.0,), also=(1,))),
        ("(mean * gradient) / (square.sqrt() + gradient.abs() + 1e-8)", None),  # nothing is divided then
        ("mean / (square.sqrt() + gradient.abs() + mean.abs() + 1e-8)", None),
    ],
)
def test_how_large_a_guard_is_shows_where_one_input_is_not_zero(answer: str, found: Plant | None) -> None:
    source = SEVERAL.format(answer=answer).replace("rate", "mean").replace("torch.rand(64)]", "torch.randn(64, 32)]")
    shown = plants_of(load_reference(source, small=False), source)
    assert shown[0] == Plant(0, (0.0,), also=(1, 2)) and shown[1:] == (() if found is None else (found,))


SLICES = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, gradient, row, column):
        return {answer}

def get_inputs():
    return [torch.randn(64, 32), torch.rand(64), torch.rand(32)]

def get_init_inputs():
    return []
"""
ROWS, COLUMNS = Plant(0, (0.0,), along=(-1,), also=(1,)), Plant(0, (0.0,), along=(-2,), also=(2,))


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("gradient / (row + (gradient.square() + 1e-30).mean(1)).sqrt()[:, None]", (ROWS,)),
        ("gradient * (column + (gradient.square() + 1e-30).mean(0)).rsqrt()", (COLUMNS,)),
        ("gradient / (row[:, None] * column + gradient.square() + 1e-8)", (ROWS, COLUMNS)),
        ("gradient / (row + gradient.square().mean(1) + 1.0).sqrt()[:, None]", ()),  # this is no guard
        ("(gradient.square() + 1e-30).sum(1) + row", ()),  # it is there, and nothing comes of it
        ("1e-3 / (row + gradient.square().mean(1)) + (row + 1e-8)", ()),  # infinity where both are zero
    ],
)
def test_what_guards_a_slice_is_shown_with_zeros_in_what_has_one_number_for_each(answer: str, found: tuple[Plant, ...]) -> None:
    source = SLICES.format(answer=answer)
    assert plants_of(load_reference(source, small=False), source) == found


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("gradient / (0.9 * square + gradient.square()).sqrt().clamp(min=1e-8)", Plant(0, (0.0,), also=(1,))),
        (
            "(gradient - square) / (gradient - square).norm(dim=1, keepdim=True).clamp(min=1e-6)",
            Plant(0, (0.0,), along=(-1,), also=(1,)),
        ),
        ("gradient / torch.maximum((gradient - square).norm(), torch.tensor(1e-6))", None),  # rows leave some of a whole norm
        (
            "gradient / (rate + gradient.square().mean(1)).sqrt().clamp(min=1e-8)[:, None]",
            Plant(0, (0.0,), along=(-1,), also=(1, 2)),
        ),
        ("1.0 / ((gradient - square).norm(dim=1) * (gradient - square).norm(dim=1).clamp(min=1e-6))", None),  # infinity there
    ],
)
def test_limits_of_what_several_inputs_make_are_shown_where_all_of_them_are_zero(answer: str, found: Plant | None) -> None:
    source = SEVERAL.format(answer=answer)
    assert plants_of(load_reference(source, small=False), source) == (() if found is None else (found,))


@pytest.mark.parametrize("plant", [ROWS, COLUMNS])
def test_slices_and_what_has_one_number_for_each_are_zero_at_the_same_places(plant: Plant) -> None:
    inputs = [torch.ones(64, 32), torch.ones(64), torch.ones(32)]
    gradient, *beside = planted(inputs, plant, 3)
    here = beside[plant.also[0] - 1] == 0
    assert 0 < here.sum() < here.numel()
    assert torch.equal((gradient == 0).all(plant.along[0]), here) and torch.equal((gradient == 0).any(plant.along[0]), here)
    assert torch.equal(beside[2 - plant.also[0]], inputs[3 - plant.also[0]])
