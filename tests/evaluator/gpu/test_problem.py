"""A study of a reference: what it finds, and how often it makes models and inputs. Tensors lie on the CPU here."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from rlkernel.evaluator.judging.errors.own_error import OwnError
from rlkernel.evaluator.judging.inputs import fixed
from rlkernel.evaluator.judging.inputs import stress as stresses_of
from rlkernel.evaluator.messages.gpu import Known
from rlkernel.evaluator.messages.judgement import NONE_SHOWN, NOWHERE, InputFate, Stress, Tolerance
from rlkernel.types import Precision

SOURCE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {made}

    def forward(self, x, y):
        {body}

def get_inputs():
    return [torch.{drawn}(8, 16), torch.arange(16)]

def get_init_inputs():
    return []
"""


class Played:
    """A stopwatch that times nothing."""

    def run(self, call: Any, spin_us: float) -> tuple[Any, Any]:
        return call(), SimpleNamespace(void=False, host_us=60.0)


@pytest.fixture
def study(room: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """(made, body, drawn) -> what a study knows, and how many models and inputs it made."""
    monkeypatch.setattr(room.problem.GpuProblem, "_rows", lambda self, program, stopwatch: [])
    for module in (room.problem, room.measuring):
        monkeypatch.setattr(module, "draw_seed", itertools.count(1).__next__)
    monkeypatch.setattr(room.problem.showing.driver, "lost_context", lambda: None)
    # The inputs are on the host here, where other ones are tried in the place of those that are always the same; not on a GPU.
    monkeypatch.setattr(fixed, "_fixed", lambda one, other: [])
    monkeypatch.setattr(stresses_of, "may_be_fixed", lambda tensor: False)

    def studied(
        made: str, body: str, drawn: str = "randn", source: str = SOURCE, *, shown: bool = False, steps: Any = ()
    ) -> tuple[Known, int, int]:  # fmt: skip
        one = room.problem.GpuProblem(source.format(made=made, body=body, drawn=drawn), "problem")
        counts = {"model": 0, "inputs": 0}

        def counted(name: str) -> Any:
            method = getattr(one, name)

            def call(*args: Any, **options: Any) -> Any:
                counts[name] += 1
                return method(*args, **options)

            return call

        one.model, one.inputs = counted("model"), counted("inputs")
        known = one.study(SimpleNamespace(forward=steps), Played(), Precision.PYTORCH, stress=True, shown=shown)
        return known, counts["model"], counts["inputs"]

    return studied


def test_a_forward_without_products_is_studied_with_few_models_and_inputs(study: Any) -> None:
    known, models, inputs = study("self.scale = nn.Parameter(torch.ones(16))", "return torch.tanh(x * self.scale) + y")
    # As it is written and at the hardest inputs: two models; the call, its fates and the exact call, nudged. Timed: one of each.
    # One model tells which rows may be tiny or below zero.
    assert (models, inputs) == (2 * 2 + 1 + 1, 2 * 3 + 1)
    assert (known.stress, known.perturbs, known.changes_state) == (Stress.EXTREME, True, ())
    assert known.fates == (InputFate.KEPT, InputFate.KEPT)
    assert known.plain and not known.gaps
    assert known.host_us == 60.0 and 0.0 < known.draw_seconds < 10.0
    assert known.allowed["plain"] == known.allowed["timed"]


def test_state_that_forward_changes_is_named(study: Any) -> None:
    known, _, _ = study("self.norm = nn.BatchNorm1d(16)", "x.mul_(0.5); return self.norm(x) + y * 0.0")
    assert known.changes_state == ("norm.running_mean", "norm.running_var")
    assert known.fates == (InputFate.CHANGED, InputFate.KEPT)


def test_a_buffer_that_differs_from_module_to_module_is_not_one_that_forward_changes(study: Any) -> None:
    """Such as one of `torch.empty`, of which forward writes what it reads."""
    drawn = "torch.rand(16, generator=torch.Generator().manual_seed(__import__('secrets').randbits(31)))"
    known, _, _ = study(f"self.register_buffer('table', {drawn})", "return torch.relu(x) + y")
    assert known.changes_state == ()


@pytest.mark.parametrize(
    ("enough_us", "gaps", "spins"), [(100.0, False, [400.0]), (3e3, False, [400.0, 5e3]), (math.inf, True, [400.0, 5e3])]
)
def test_a_reference_has_gaps_that_a_long_spin_does_not_cover(
    study: Any, monkeypatch: pytest.MonkeyPatch, enough_us: float, gaps: bool, spins: list[float]
) -> None:
    seen: list[float] = []

    def run(self: Played, call: Any, spin_us: float) -> tuple[Any, Any]:
        seen.append(spin_us)
        return call(), SimpleNamespace(void=spin_us < enough_us, host_us=60.0)

    monkeypatch.setattr(Played, "run", run)
    known, _, _ = study("self.scale = nn.Parameter(torch.ones(16))", "return torch.tanh(x * self.scale) + y")
    assert (known.gaps, seen) == (gaps, spins)


def test_state_is_measured_in_the_passes_that_measure_outputs(study: Any) -> None:
    made, body = "self.norm = nn.BatchNorm1d(16)", "return self.norm({}) + y * 0.0"
    known, models, inputs = study(made, body.format("x"))
    assert set(known.of_state) == {"plain", "range", "stress"}
    assert set(known.of_state["plain"]) == set(known.changes_state) == {"norm.running_mean", "norm.running_var"}
    # Two models, one draw for a call, one for its fates and float64, one nudged: as it is written, and at the hardest inputs. The
    # timed call has one of each. One model tells which rows may be tiny or below zero.
    assert (models, inputs) == (2 * 2 + 1 + 1, 2 * 3 + 1)
    product, models, inputs = study(made, body.format("x @ x.T @ x"))
    # Besides, for each: operands rounded and cut off in place of neither. The timed answer is computed once more. No balance.
    assert (models, inputs) == (2 * 2 + 2 + 1 + 1, 2 * (3 + 2) + 2 + 1)
    name = "norm.running_mean"
    assert product.of_state["plain"][name].norm > known.of_state["plain"][name].norm, "tf32 may be used"


def test_state_that_is_noise_is_so_in_the_rounds_where_it_was_seen_to_be(study: Any) -> None:
    """The second normalisation's mean is zero but for roundings, as long as the first one adds nothing: its bias has other values
    in the hard round, where a running mean that is left out is wrong."""
    made = "self.first, self.second = nn.BatchNorm1d(16), nn.BatchNorm1d(16)"
    known, _, _ = study(made, "return self.second(self.first(x)) + y * 0.0")
    name = "second.running_mean"
    assert known.perturbs and known.stress is Stress.EXTREME
    assert known.of_state["plain"][name].norm > 7.9 and known.of_state["plain"][name].element == math.inf
    assert known.of_state["stress"][name].norm < 0.01 and known.of_state["stress"][name].element <= 0.4
    assert known.of_state["plain"]["first.running_mean"].norm < 0.01


def test_an_output_that_is_noise_is_so_at_the_usual_constants_alone(study: Any) -> None:
    made = "self.norm = nn.GroupNorm(1, 16)"
    known, _, _ = study(made, "return self.norm(x).mean(1) + 0.0 * y.sum()")
    assert known.allowed["plain"][0].norm == pytest.approx(8.0)
    assert known.allowed["other"][0].norm < 0.01 and known.allowed["stress"][0].norm < 0.01


def test_where_tf32_makes_too_much_of_an_output_rounds_are_judged_without_it(study: Any) -> None:
    known, _, _ = study("", "return torch.sin(60.0 * (x @ x.T)) + 0.0 * y.sum()")
    assert known.blurred and known.allowed["plain"][0].norm < 0.021  # what tf32 may add at most, and a little of its own
    assert known.allowed["timed"] == known.allowed["plain"], "nothing of the reference runs in tf32 on a CPU"
    sharp, _, _ = study("", "return x @ x.T @ x + y")
    assert not sharp.blurred


@pytest.mark.parametrize(
    ("made", "body"),
    [
        # A buffer shows it, and no output: such as a running mean behind a normalisation.
        (
            "self.register_buffer('seen', torch.zeros(8))",
            "self.seen.copy_(torch.sin(60 * (x @ x.T)).mean(1)); return x @ x.T @ x + y",
        ),
        # float32 itself is too coarse, so that the reference is its own measure, and tf32 all the more.
        ("", "return torch.frac(1e6 * (x @ x.T)) + 0.0 * y.sum()"),
    ],
)
def test_what_tf32_blurs_is_seen_in_state_and_where_float32_is_no_measure(study: Any, made: str, body: str) -> None:
    known, _, _ = study(made, body)
    assert known.blurred


def test_what_is_allowed_of_a_timed_call_of_a_reference_that_runs_in_tf32(room: Any) -> None:
    limit, timed = Tolerance(0.02, 0.4), room.measuring._timed
    assert timed(limit, OwnError(norm=0.2, element=5.0), blurred=True) == Tolerance(pytest.approx(0.02 + 2 * 0.2), math.inf)
    assert timed(limit, OwnError(norm=0.9), blurred=True).norm == pytest.approx(0.02 + 2 * 0.3), "zeros miss by 1"
    assert timed(limit, OwnError(), blurred=True) == limit, "it does not run in tf32"
    assert timed(limit, OwnError(norm=0.01, element=0.1), blurred=False) == Tolerance(pytest.approx(0.03), 0.4)


def test_the_hardest_round_has_the_bound_of_its_own_error(study: Any) -> None:
    """A factor of 8 on the inputs costs bfloat16 nothing: what it rounds is relative."""
    known, _, _ = study("", "return torch.tanh(0.1 * x).bfloat16() + 0.0 * y.sum()")
    assert known.stress is Stress.EXTREME
    assert known.allowed["stress"][0].norm < 0.03  # 0.02, the floor, and the reference's own 0.002


@pytest.mark.parametrize(
    ("body", "plants"),
    [
        ("return (y == wanted).sum() + 0 * x.sum().long()", True),
        ("return (y == wanted).sum() + x.sum()", False),  # it has something to do
        ("return x * 2, (y == wanted).sum()", True),  # one of two results has nothing to do
        ("return (y == -wanted).sum() + 0 * x.sum().long()", False),  # and here it never has
    ],
)
def test_a_reference_that_has_nothing_to_do_gets_numbers_of_its_arguments(study: Any, body: str, plants: bool) -> None:
    counted = SOURCE.replace("x, y)", "x, y, wanted)").replace("torch.arange(16)]", "torch.arange(16), 20]")
    known, _, _ = study("", body, source=counted)
    assert known.plants is plants


def test_zeros_that_the_reference_overwrites_stay_zeros_in_the_hardest_round(room: Any) -> None:
    source = SOURCE.format(made="", body="y[:, 0] = x.sum(1); return y", drawn="randn")
    whole = source.replace("torch.arange(16)", "torch.zeros(8, 1)")
    for text, read in ((whole, False), (whole.replace("= x.sum(1)", "+= x.sum(1)"), True)):
        problem = room.problem.GpuProblem(text, "problem")
        there = problem.places(Stress.SCALED, NOWHERE)
        plain, hard = problem.inputs(3), problem.inputs(3, room.problem.Kind(stress=Stress.SCALED, perturbed=True, places=there))
        assert torch.equal(hard[0], plain[0] * 8.0)
        assert bool(hard[1].any()) is read


EVEN = "arange(128.0).view(8, 16).sin() + 0 * torch.randn"
"""Numbers about zero whose mean is 0.01 in every draw."""


@pytest.mark.parametrize(
    ("drawn", "body", "stress"),
    [
        ("rand", "return x * 2", Stress.EXTREME),
        ("rand", "return x.clamp_(min=-1)", Stress.EXTREME),
        ("rand", "return torch.sqrt(x)", Stress.SCALED),  # centred, it has NaN
        ("ones", "return x * 2", Stress.SCALED),
        ("ones", "assert x.max() < 2; return x * 2", Stress.VARIED),  # half to three halves
        ("randn", "return x * 2", Stress.EXTREME),
        (EVEN, "assert abs(x.mean()) < 2; return x * 2", Stress.SCALED),  # moved, it has another mean
        (EVEN, "assert x.abs().max() < 2; return x * 2", Stress.LEAST),  # they lie between -1 and 1
        (EVEN, "assert x.abs().max() < 4; return x * 2", Stress.LESS),
        (EVEN, "assert x.abs().max() < 1.2; return x * 2", Stress.NONE),
    ],
)
def test_the_hardest_inputs_that_a_reference_bears(study: Any, drawn: str, body: str, stress: Stress) -> None:
    known, _, _ = study("pass", body, drawn)
    assert known.stress is stress
    assert ("stress" in known.allowed) == (stress is not Stress.NONE)


def test_a_reference_whose_host_reads_is_told_from_others(room: Any, study: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room.problem.host_reads, "is_of_gpu", lambda tensor: True)
    known, models, inputs = study("", "return torch.tanh(x[: int(y[5].item())])")
    assert (known.reads, known.gaps) == (True, False)
    # One model and one draw of inputs more than without: those of the call that is given the numbers.
    plain, fewer, once = study("", "return torch.tanh(x[:5])")
    assert (plain.reads, models - fewer, inputs - once) == (False, 1, 1)


@pytest.mark.parametrize(("seconds", "hurried"), [(600.0, False), (0.0, True)])
def test_a_study_tells_whether_time_was_short(
    study: Any, room: Any, seconds: float, hurried: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A card that others use, too, is slow: what they leave no time for does not last."""
    monkeypatch.setattr(room.further, "SECONDS", seconds)
    monkeypatch.setattr(room.further, "shown_of", lambda *_: NONE_SHOWN)
    known, _, _ = study("pass", "return torch.tanh(x) + y", shown=True)
    assert known.hurried is hurried
    assert not study("pass", "return torch.tanh(x) + y")[0].hurried
