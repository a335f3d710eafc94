"""Inputs that show what no draw does: what a study finds, and that a stay judges there. Tensors lie on the CPU here."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import Any

import pytest
import torch

from rlkernel.evaluator.judging.inputs.one_sided import NOTE, one_sided
from rlkernel.evaluator.messages import codec
from rlkernel.evaluator.messages.gpu import Known
from rlkernel.evaluator.messages.judgement import (
    NOWHERE,
    Labelled,
    Met,
    OneSided,
    Places,
    Plant,
    Pressed,
    Repeated,
    Resized,
    Shown,
    Stress,
)
from rlkernel.evaluator.program.schema import Op, Program
from rlkernel.evaluator.program.values import TensorRef
from rlkernel.types import Precision
from tests.evaluator.gpu.test_problem import Played
from tests.evaluator.gpu.test_whole_stay import KNOWN, LIMIT, stay

__all__ = ["stay"]  # a fixture

SOURCE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {made}

    def forward(self, x, y):
        {before}
        return {answer}

def get_inputs():
    return [torch.randn(64, 32), {y}]

def get_init_inputs():
    return []
"""
BOTH = "torch.randn(64, 32)"


def source_of(*, answer: str, y: str, made: str, before: str = "pass") -> str:
    """A problem's file."""
    return SOURCE.format(answer=answer, y=y, made=made, before=before)


MASK = "torch.ones(64, 32).tril().bool()"


@pytest.fixture
def known(room: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """(answer, operator of its trace) -> what a study knows."""
    monkeypatch.setattr(room.problem.GpuProblem, "_rows", lambda self, program, stopwatch: [])
    for module in (room.problem, room.measuring, room.further):
        monkeypatch.setattr(module, "draw_seed", itertools.count(1).__next__)
    monkeypatch.setattr(room.problem.showing.driver, "lost_context", lambda: None)

    def studied(
        answer: str, operator: str = "add", *, y: str = BOTH, made: str = "pass", before: str = "pass", shown: bool = True
    ) -> Known:
        problem = room.problem.GpuProblem(source_of(answer=answer, y=y, made=made, before=before), "problem")
        forward = tuple(Op(f"aten.{name}.default", (TensorRef(1),), {}, (2,)) for name in operator.split())
        program = Program((), (), (), {}, (), forward, None)
        found: Known = problem.study(program, Played(), Precision.PYTORCH, stress=True, shown=shown)
        return found

    return studied


@pytest.mark.parametrize(
    ("answer", "operator", "shown"),
    [
        ("x.clamp(max=200) + y", "clamp", Shown((Plant(0, (256.0, -256.0)),))),
        ("x.clamp(max=0.5) + y", "clamp", Shown()),  # which many reach
        ("x.clamp(max=200) + y", "add", Shown()),  # its trace has no such operator
        ("x.clamp(max=200) + y", "clamp topk", Shown()),  # of equal numbers any may be taken
        ("y + x.argmax(1, keepdim=True)", "argmax", Shown(repeated=(Repeated(0, None),), pressed=(Pressed(0, 1),))),
        ("x - 1e-6 * y", "sub", Shown(resized=(Resized(1, 2.0**19),))),
        ("torch.where(x >= y, x.exp(), -y)", "ge", Shown(met=(Met(0, 1, False),))),
        ("(x.t() @ y).square().mean()", "mm", Shown(one_sided=(OneSided(),))),
        ("x * torch.clamp(1.0 / x.norm(), max=1.0) + y", "clamp", Shown(resized=(Resized(0, 2.0**-10),))),
    ],
)
def test_what_a_study_finds_and_the_reference_bears(known: Any, answer: str, operator: str, shown: Shown) -> None:
    found = known(answer, operator)
    assert found.shown == shown
    assert {str(one) for one in shown} <= set(found.allowed)
    assert known(answer, operator, shown=False).shown == Shown()


def test_a_study_finds_labels_that_name_no_large_number(known: Any) -> None:
    answer, labels = "x.log_softmax(1).gather(1, y)", "torch.randint(32, (64, 1))"
    found = known(answer, "gather", y=labels)
    assert found.shown == Shown(labelled=(Labelled(0, 1, 1),)) and str(Labelled(0, 1, 1)) in found.allowed
    assert known(answer, "add", y=labels).shown == Shown()


def test_what_leads_to_other_answers_than_finite_ones_is_no_round(known: Any) -> None:
    assert known("torch.exp(x.clamp(max=200)) + y", "clamp").shown == Shown(), "exp(128) is infinite"


@pytest.mark.parametrize(
    ("y", "answer", "places"),
    [
        (MASK, "x.masked_fill(~y, 0.0)", Places(turned=(1,))),
        ("torch.ones(64, 32, dtype=torch.bool)", "x.masked_fill(~y, 0.0)", Places(holed=(1,))),
        ("torch.arange(64)", "x[y]", Places(turned=(1,))),  # one farther leads out of the table
        ("torch.arange(32)", "x[y]", Places(turned=(1,))),  # at other sizes it may
        ("torch.arange(64)", "x + torch.ones(64, 32)[y]", Places(turned=(1,))),
        (BOTH, "x + y", NOWHERE),
        ("torch.randint(64, (1, 32)).repeat(64, 1)", "x + y", Places(rows=(1,))),
        ("torch.randint(64, (64, 32))", "x + y", NOWHERE),
        ("torch.ones(1 << 22, dtype=torch.bool)", "x * y.any()", NOWHERE),  # the host would take long
    ],
)
@pytest.mark.usefixtures("known")
def test_inputs_that_are_always_the_same_are_others(room: Any, y: str, answer: str, places: Places) -> None:
    source = source_of(answer=answer, y=y, made="pass")
    problem = room.problem.GpuProblem(source, "problem")
    assert room.problem.on_host.always_same(problem) == places


def test_they_are_so_in_the_hardest_round(known: Any, room: Any) -> None:
    found = known("x.masked_fill(~y, 0.0)", y=MASK)
    assert (found.stress, found.places.turned) == (Stress.EXTREME, (1,))
    problem = room.problem.GpuProblem(source_of(answer="x", y=MASK, made="pass"), "problem")
    plain, hard = (problem.inputs(3, room.problem.Kind(stress=s, places=found.places)) for s in (Stress.NONE, found.stress))
    assert torch.equal(plain[1].sum(1), hard[1].sum(1)) and not torch.equal(plain[1], hard[1]), "each row keeps as many"
    kind = room.problem.Kind(stress=found.stress, places=found.places)
    assert "inputs that are always the same at others" in kind.note


def test_what_never_varies_is_judged_at_usual_inputs_too(known: Any, room: Any) -> None:
    """Of 63 keys a page's end is behind the length; with scores 64 times as large none of these is the largest in most rows."""
    y, keys = "torch.full((64,), 48)", "torch.softmax((x @ x.T).masked_fill(torch.arange(64) >= y[:, None], -1e30), 1) @ x"
    found = known(keys, y=y)
    assert (found.mild, found.places.holed) == ((Stress.VARIED,), (1,)) and "mild varied" in found.allowed
    problem = room.problem.GpuProblem(source_of(answer=keys, y=y, made="pass"), "problem")
    mild = room.further.at_usual_inputs(Stress.VARIED, found.places)
    usual, given = problem.inputs(3), problem.inputs(3, mild)
    assert torch.equal(given[0], usual[0]) and given[1].unique().tolist() == [25, 48]
    assert "inputs of one value at others" in mild.note
    assert known("x.masked_fill(~y, 0.0)", y=BOTH + " > 2").mild == (), "it varies"


def test_half_precision_is_judged_with_large_weights(known: Any) -> None:
    made = "self.weight = nn.Parameter(torch.randn(32, 32))"
    assert known("(x.bfloat16() @ self.weight.bfloat16()) + y.bfloat16()", made=made).outliers
    assert not known("x @ self.weight + y", made=made).outliers


def test_a_number_that_is_planted_at_a_jump_excuses_no_other_answer_there(known: Any) -> None:
    found = known("torch.nn.functional.hardshrink(x, 0.5) + y", "hardshrink")
    assert found.shown == Shown((Plant(0, (0.5,)),))
    (limit,) = found.allowed[str(Plant(0, (0.5,)))]
    # An eighth of the numbers is a half; each one that a rounding led to 0 would be off by 0.5.
    assert limit.norm < 1e-4 and limit.element < 1e-2


def test_numbers_of_two_inputs_that_meet_excuse_no_other_answer_there(known: Any) -> None:
    (limit,) = known("torch.where(x >= y, x.exp(), -y)", "ge").allowed[str(Met(0, 1, False))]
    assert limit.norm < 1e-4 and limit.element < 1e-2


def test_weights_are_rounded_to_one_side_as_inputs_are(room: Any) -> None:
    made = "self.weight = nn.Parameter(torch.randn(32, 32))"
    problem = room.problem.GpuProblem(source_of(answer="x @ self.weight", y=BOTH, made=made), "problem")
    kind = room.problem.Kind(shown=OneSided())
    weight, given = problem.model_for(kind, 3).weight.detach(), problem.inputs(3, kind)[0]
    assert torch.equal(weight, one_sided(weight)) and torch.equal(given, one_sided(given))
    assert not torch.equal(weight, problem.model(3).weight) and NOTE in kind.note


def test_what_is_known_goes_over_the_wire(known: Any) -> None:
    found = known("x.clamp(max=200) + y", "clamp")
    assert codec.unpack(codec.to_header(found), Known) == found
    nan = known("x.nan_to_num(nan=0.5) + y", "nan_to_num")
    (plant,) = codec.unpack(json.loads(json.dumps(codec.to_header(nan))), Known).shown
    assert str(plant) in nan.allowed, "the rounds' bounds are found by its text"


PADDED = """
        rows = torch.randn(64, 8, generator=torch.Generator().manual_seed(0))[y].masked_fill((y == 0)[..., None], -torch.inf)
        return torch.where((y == 0).all(1, keepdim=True), 0.0, rows.amax(1)) + x[:, :1]"""
PLACES = "torch.where(torch.arange(9) < torch.randint(1, 9, (64, 1)), torch.randint({least}, 64, (64, 9)), {least})"


@pytest.mark.parametrize(
    ("least", "plants"), [(0, (Plant(1, (0.0,), along=(-1,)),)), (1, ())], ids=["padding is drawn", "no zero is"]
)
def test_whole_numbers_that_the_host_bears_are_planted_within_what_is_drawn(
    known: Any, least: int, plants: tuple[Plant, ...]
) -> None:
    """A row of padding alone; each row that is drawn names a place."""
    source = PADDED.replace("\n        return", "; answer =").strip()
    found = known("answer", "all", y=PLACES.format(least=least), made="pass", before=source)
    assert tuple(one for one in found.shown if isinstance(one, Plant) and one.place == 1) == plants


SHRINKS = """
SMALL = {{"T": 32}}
T = {full}
"""


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(
    ("full", "y", "places"),
    [
        (1 << 21, "torch.arange(T)", Places(turned=(1,))),  # the host looks at 32 alone
        (64, "torch.arange(32) % (T // 32)", NOWHERE),  # all zero at the small size alone
        (64, "torch.randperm(32) * (T // 64)", NOWHERE),  # always the same there alone
    ],
)
def test_what_is_the_same_at_the_small_shape_alone_stays(room: Any, full: int, y: str, places: Places) -> None:
    source = SHRINKS.format(full=full) + source_of(answer="x[y % 64 % 32]", y=y, made="pass")
    problem = room.problem.GpuProblem(source, "problem")
    assert room.problem.on_host.always_same(problem) == places


def test_what_costs_the_context_is_raised(room: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    showing = room.problem.showing
    monkeypatch.setattr(showing.driver, "lost_context", lambda: None)
    assert showing.found(lambda: 1 // 0, 7) == 7
    monkeypatch.setattr(showing.driver, "lost_context", lambda: 700)
    with pytest.raises(ZeroDivisionError):
        showing.found(lambda: 1 // 0, 7)
    with pytest.raises(RuntimeError, match="context is lost"):
        showing.found(lambda: 1, 7)


def test_each_stress_is_tried_with_others_in_place_of_the_same_and_without(room: Any) -> None:
    same = Places(turned=(1,))
    scaled = [Stress.SCALED, Stress.NONE]
    assert room.measuring._ways(scaled, NOWHERE) == [(Stress.SCALED, NOWHERE), (Stress.NONE, NOWHERE)]
    with_same = [(Stress.SCALED, same), (Stress.VARIED, same)]
    assert room.measuring._ways(scaled, same) == [*with_same, (Stress.SCALED, NOWHERE), (Stress.NONE, NOWHERE)]


def test_rows_at_the_edge_at_which_the_reference_errs_by_more_are_not_drawn(
    known: Any, room: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert known("2 * x + y").stress is Stress.EXTREME
    monkeypatch.setattr(room.measuring.Seen, "as_tight", lambda self, usual: False)
    assert known("2 * x + y").stress is Stress.UNEVEN
    made = "self.weight = nn.Parameter(torch.randn(32, 32))"
    assert not known("(x.bfloat16() @ self.weight.bfloat16()) + y.bfloat16()", made=made).outliers


def test_what_a_reference_cannot_tell_itself_is_not_borne(room: Any) -> None:
    problem = room.problem.GpuProblem(source_of(answer="x + y", y=BOTH, made="pass"), "problem")
    usual = room.measuring.Measuring(problem, Precision.PYTORCH).see(room.problem.Kind())
    assert usual.bearable(usual) and not replace(usual, undecided=1 / 4096).bearable(usual)
    assert replace(usual, undecided=2 / 4096).bearable(replace(usual, undecided=1 / 4096))
    assert not replace(usual, undecided=0.2).bearable(replace(usual, undecided=1 / 4096))
    assert usual.as_tight(usual) and usual.as_exact(usual)
    assert replace(usual, jumps=(True,)).bearable(usual) and not replace(usual, jumps=(True,)).as_exact(usual)


def test_planted_numbers_stay_where_inputs_move_by_their_rounding(room: Any) -> None:
    """Beside a bound the answer is another one: of an eighth of the numbers half were shrunk and half were not, which made an
    error of the reference's own of 3 %, and a wrong bound right."""
    problem = room.problem.GpuProblem(
        source_of(answer="nn.functional.hardshrink(x, 0.25) + 2 * y", y=BOTH, made="pass"), "problem"
    )
    seen = room.measuring.Measuring(problem, Precision.PYTORCH).see(room.problem.Kind(shown=Plant(0, (0.25,))))
    assert seen.errors[0].norm < 1e-6


def test_errors_of_such_a_round_excuse_no_other(known: Any) -> None:
    """Made a thousand times as small, the input is lost beside 512."""
    made = "self.register_buffer('mean', torch.zeros(32))"
    answer = "x * torch.clamp(1.0 / x.norm(), max=1.0) + y + 0 * self.mean.copy_(((x + 512) - 512)[0])"
    found, without = (known(answer, "clamp", made=made, shown=shown) for shown in (True, False))
    (one,) = found.shown
    assert found.of_state["plain"]["mean"].norm < 2.0 * without.of_state["plain"]["mean"].norm
    assert found.of_state[str(one)]["mean"].norm > 100.0 * found.of_state["plain"]["mean"].norm


def test_large_weights_are_in_a_module_of_such_a_round(room: Any) -> None:
    made = "self.weight = nn.Parameter(torch.randn(32, 32))"
    problem = room.problem.GpuProblem(source_of(answer="x @ self.weight + y", y=BOTH, made=made), "problem")
    plain, large = (problem.model_for(room.problem.Kind(outliers=outliers), 3).weight for outliers in (False, True))
    others = large != plain
    assert 0 < int(others.sum()) < 16 and torch.equal(large[others], 64.0 * plain[others]), "4 of 1,024 are expected"


SINK = "torch.softmax(torch.cat([x @ x[:8].mT * 0.25, self.sink[:1].expand(64, 1)], 1), 1)[:, :-1] @ x[:8] + y"
"""Attention with one more score, which a row of large scores hides."""


def test_a_constant_that_large_inputs_hide_is_judged_at_usual_ones(known: Any) -> None:
    made = "self.sink = nn.Parameter(torch.zeros(16))"
    found = known(SINK.replace("+ y", "+ 1e-6 * y"), made=made)
    assert found.mild == (Stress.NONE,) and found.stress is not Stress.NONE and "mild" in found.allowed
    assert known("x + self.sink.sum() + y", made=made).mild == (), "the hardest round shows it"
    assert known("x + y", made=made).mild == (), "no round shows it"


def test_what_varies_may_hide_a_constant_that_shows_where_nothing_does(known: Any) -> None:
    """It shows where a bias is zero, which it is in each draw, and in no round in which it varies."""
    made, answer = "self.sink = nn.Parameter(torch.zeros(32))", "torch.where(y == 0, x + self.sink, x + y)"
    found = known(answer, y="torch.zeros(32)", made=made)
    assert found.mild == (Stress.VARIED, Stress.NONE) and {"mild", "mild varied"} <= found.allowed.keys()


@pytest.mark.parametrize(
    ("name", "kind", "note"),
    [("outliers", {"outliers": True}, "some weights times 64"), ("mild", {"mild": (Stress.NONE,)}, "parameters at other values")],
)
def test_a_stay_judges_with_large_weights_and_other_constants(stay: Any, name: str, kind: dict[str, Any], note: str) -> None:
    known = replace(KNOWN, allowed={**KNOWN.allowed, name: LIMIT}, **kind)

    def kernel(args: dict[str, Any], number: int) -> None:
        args["y"].copy_((2.1 if number == 1 else 2.0) * args["x"])  # the second call is that of such a round

    found, _ = stay(kernel, known=known)
    assert not found.matches and note in found.detail


def test_a_stay_judges_where_a_limit_is_seen(stay: Any, room: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference doubles what is below 200, and the candidate everything."""
    source = source_of(answer="2 * x.clamp(max=200)", y="", made="pass").replace("x, y)", "x)").replace("64, 32), ]", "4, 8)]")
    problem = room.problem.GpuProblem(source, "limited")
    monkeypatch.setattr(room.problem, "GpuProblem", lambda *given: problem)
    plant = Plant(0, (256.0, -256.0))

    def kernel(args: dict[str, Any], number: int) -> None:
        args["y"].copy_(2 * args["x"])

    blind, _ = stay(kernel, known=KNOWN)
    assert blind.matches
    seeing = replace(KNOWN, allowed={**KNOWN.allowed, str(plant): LIMIT}, shown=Shown((plant,)))
    found, _ = stay(kernel, known=seeing)
    assert not found.matches and "numbers among its inputs that an operator is for" in found.detail


@pytest.mark.parametrize(
    ("answer", "operator", "rounds"),
    [
        ("2 * x", "mul", 0),
        ("2 * x.clamp(max=200)", "clamp", 1),
        ("2 * x.nan_to_num(nan=0.5)", "nan_to_num", 1),
        ("2 * torch.where(x > 50, x * x, x)", "gt", 2),
    ],
)
def test_who_is_right_is_right_in_all_rounds_of_a_study(
    stay: Any, known: Any, room: Any, monkeypatch: pytest.MonkeyPatch, answer: str, operator: str, rounds: int
) -> None:
    source = source_of(answer=answer, y="", made="pass").replace("x, y)", "x)").replace("64, 32), ]", "4, 8)]")
    problem = room.problem.GpuProblem(source, "right")
    program = Program((), (), (), {}, (), (Op(f"aten.{operator}.default", (TensorRef(1),), {}, (2,)),), None)
    found = problem.study(program, Played(), Precision.PYTORCH, stress=True, shown=True)
    assert len(list(found.shown)) == rounds and found.stress is Stress.EXTREME
    monkeypatch.setattr(room.problem, "GpuProblem", lambda *given: problem)

    def right(args: dict[str, Any], number: int) -> None:
        args["y"].copy_(problem.reference.model(0)(args["x"]))

    judged, _ = stay(right, known=found)
    assert judged.matches, judged.detail
