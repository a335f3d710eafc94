"""The second look at one call: outputs and state are held against what the reference makes of rounding in that very call."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import nn

from rlkernel.evaluator.gpu.closer import Call, Changed, look_closer
from rlkernel.evaluator.judging.errors.comparison import compare_tensor
from rlkernel.evaluator.judging.errors.noise import moved_call
from rlkernel.evaluator.judging.errors.wavering import CALLS
from rlkernel.evaluator.judging.references.flags import set_precision
from rlkernel.evaluator.judging.references.reference_calls import call, state_of, tensors_of
from rlkernel.evaluator.messages.judgement import Tolerance
from rlkernel.types import Precision

MEAN, VAR = "second.running_mean", "second.running_var"
USUAL = Tolerance(5e-5, 1e-3)


class Magnified(nn.Module):
    """Two batch norms of two rows that differ by 1e-4: the first one makes them differ by 1, and their roundings with them."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.first = nn.Linear(64, 64, bias=False), nn.BatchNorm1d(64)
        self.b, self.second = nn.Linear(64, 64, bias=False), nn.BatchNorm1d(64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.second(self.b(torch.relu(self.first(self.a(x)))))
        return y


@pytest.fixture
def made() -> tuple[Call, dict[str, torch.Tensor], list[torch.Tensor]]:
    """A call of the reference, the state that it leaves, and what other roundings give: output, mean and variance."""
    torch.manual_seed(0)
    model, inputs = Magnified(), [torch.rand(1, 64) + 1e-4 * torch.randn(2, 64)]
    after = copy.deepcopy(model)
    expected = call(after, inputs, 0)
    other = moved_call(model, state_of(model), inputs, 0, (MEAN, VAR))
    assert other is not None
    return Call(model, inputs, 0, expected), state_of(after), other


def seen(made: Call, after: dict[str, torch.Tensor], output: torch.Tensor, mean: torch.Tensor, var: torch.Tensor) -> str:
    state = {MEAN: Changed(mean, after[MEAN], USUAL), VAR: Changed(var, after[VAR], USUAL)}
    return look_closer(output, made, state, Precision.STRICT).detail


def test_state_may_miss_by_what_rounding_makes_of_it_in_the_same_call(
    made: tuple[Call, dict[str, torch.Tensor], list[torch.Tensor]],
) -> None:
    reference, after, (output, mean, var) = made
    usual = compare_tensor(mean, after[MEAN], after[MEAN], allowed=USUAL, overlapping=False, where="")
    assert not usual.matches and 2e-4 < usual.error < 2e-2, "the study, of other rows, allows too little"
    assert seen(reference, after, output, mean, var) == ""


@pytest.mark.parametrize(
    "wrong",
    [
        lambda mean: torch.zeros_like(mean),  # not updated
        lambda mean: 2 * mean,  # a momentum of 0.2 in place of 0.1
        lambda mean: mean.roll(1),  # of another channel
        lambda mean: mean + 0.05 * mean.norm() / 8,  # 5 % of its size beside it
    ],
)
def test_state_that_is_wrong_stays_wrong(
    made: tuple[Call, dict[str, torch.Tensor], list[torch.Tensor]], wrong: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    reference, after, (output, mean, var) = made
    detail = seen(reference, after, output, wrong(mean), var)
    assert detail.startswith(f"{MEAN} after forward is wrong: relative error")


def test_a_wrong_output_is_told_before_state(made: tuple[Call, dict[str, torch.Tensor], list[torch.Tensor]]) -> None:
    reference, after, (output, mean, var) = made
    assert seen(reference, after, -output, -mean, var).startswith("output is wrong")


def test_what_the_study_allows_of_state_is_right_in_any_case() -> None:
    """A running mean that float32 holds exactly has no error of its own in the call, and the study may have seen one."""
    model = nn.BatchNorm1d(4)
    x = torch.arange(8.0).reshape(2, 4)
    after = copy.deepcopy(model)
    made = Call(model, [x], 0, call(after, [x], 0))
    wanted = state_of(after)["running_mean"]
    for limit, detail in ((2e-3, ""), (1e-4, "running_mean after forward is wrong: relative error 1.00e-03, allowed 5e-05")):
        state = {"running_mean": Changed(wanted * 1.001, wanted, Tolerance(limit, 0.4))}
        assert look_closer(tensors_of(made.expected)[0], made, state, Precision.STRICT).detail == detail


class Largest(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x).argmax(1)


@pytest.mark.parametrize(("place", "right"), [(1, True), (0, False), (3, False)])
def test_a_place_that_roundings_decide_may_be_another_one_and_no_further(place: int, right: bool) -> None:
    """Of 64 rows one has tanh at 8.5 and at 9.2, which differ by one unit in the last place."""
    x = torch.linspace(0, 1, 4).repeat(64, 1)
    x[7] = torch.tensor([0.0, 8.5, 9.2, 1.0])
    expected = call(Largest(), [x], 0)
    assert expected.tolist() == [3] * 7 + [2] + [3] * 56
    found = expected.clone()
    found[7] = place
    seen = look_closer(found, Call(Largest(), [x], 0, expected), {}, Precision.PYTORCH)
    assert seen.matches is right and (right or seen.detail == "output: 1 of 64 elements differ")
    found[:7] = 0  # and others besides, which no rounding decides
    assert (
        look_closer(found, Call(Largest(), [x], 0, expected), {}, Precision.PYTORCH).detail == "output: 8 of 64 elements differ"
    )


def test_other_roundings_are_those_of_a_reference_without_tf32() -> None:
    """As PyTorch ships it, cuDNN computes in tf32, by which far more places would be others."""
    seen = list[bool]()

    class Noting(Largest):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            seen.append(torch.backends.cudnn.allow_tf32)
            return super().forward(x)

    x = torch.linspace(0, 1, 4).repeat(64, 1)
    expected = call(Largest(), [x], 0)
    found = expected.clone()
    found[7] = 0
    set_precision(Precision.PYTORCH)
    assert not look_closer(found, Call(Noting(), [x], 0, expected), {}, Precision.PYTORCH).matches
    assert len(seen) > CALLS and not any(seen)


class Nearer(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first, second, one, other = (x @ torch.eye(4)).unbind(1)  # of 1 and 1 + 2^-12 tf32 makes equal numbers
        return torch.where(first >= second, one + 1, -other - 1)


@pytest.mark.parametrize(("changed", "right"), [((), True), ((7,), True), ((8,), False), ((7, 8), False)])
def test_another_choice_is_right_where_tf32_makes_it(changed: tuple[int, ...], right: bool) -> None:
    """Row 7 gives -2 by float32, and 2 with operands in tf32; row 8 gives 1.25 in both."""
    x = torch.tensor([1.0, 0.5, 0.25, 0.0]).repeat(64, 1)
    x[7] = torch.tensor([1.0, 1.0 + 2**-12, 1.0, 1.0])
    expected = call(Nearer(), [x], 0)
    assert expected[7] == -2.0 and expected[8] == 1.25
    found = expected.clone()
    found[list(changed)] *= -1
    made = Call(Nearer(), [x], 0, expected)
    assert look_closer(found, made, {}, Precision.PYTORCH).matches is right
    assert not changed or not look_closer(found, made, {}, Precision.STRICT).matches, "where nobody may use tf32"


class Rotated(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rates = 1.0 / 10000.0 ** (torch.arange(16).float() / 16)
        return x * (torch.arange(x.shape[0]).float()[:, None] * rates).cos()


@pytest.mark.parametrize(("places", "right"), [(torch.float32, True), (torch.bfloat16, False)])
def test_what_float32_loses_of_whole_numbers_is_the_references_own_error(places: torch.dtype, right: bool) -> None:
    """Angles of 65,536 places are rounded to 2^-8 at their largest, by the reference and by who makes rates of an exponential.
    The error of the reference is seen where float64 makes the angles, too."""
    torch.manual_seed(0)
    x = torch.randn(65536, 16)
    expected = call(Rotated(), [x], 0)
    rates = torch.exp(torch.arange(16.0) * (-9.210340371976184 / 16))
    found = x * (torch.arange(65536).to(places).float()[:, None] * rates).cos()
    usual = compare_tensor(found, expected, expected, allowed=USUAL, overlapping=False, where="")
    assert not usual.matches
    assert look_closer(found, Call(Rotated(), [x], 0, expected), {}, Precision.PYTORCH).matches is right


class Noisy(nn.Module):
    def __init__(self, drawn: Callable[[tuple[int, ...]], torch.Tensor]) -> None:
        super().__init__()
        self.drawn = drawn

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 0.02 * self.drawn(tuple(x.shape))


@pytest.mark.parametrize(
    "drawn",
    [
        torch.rand,
        lambda shape: torch.randn(*shape, dtype=torch.float32),
        lambda shape: torch.empty(shape).uniform_(),
        lambda shape: torch.zeros(shape).bernoulli_(0.5),
        lambda shape: torch.normal(0.0, 1.0, shape),
    ],
)
def test_random_numbers_that_forward_draws_are_no_error_of_the_reference(
    drawn: Callable[[tuple[int, ...]], torch.Tensor],
) -> None:
    """In float64 others come. Then to leave them out, but for their mean, would be within the reference's own error."""
    torch.manual_seed(0)
    model, x = Noisy(drawn), torch.randn(256, 64)
    expected = call(model, [x], 0)
    made = Call(model, [x], 0, expected)
    assert look_closer(expected.clone(), made, {}, Precision.PYTORCH).matches
    found = x + (expected - x).mean()
    assert not look_closer(found, made, {}, Precision.PYTORCH).matches
