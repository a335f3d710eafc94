"""From facts to one Evaluation: the order of precedence, and what stands beside the status."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlkernel.evaluator.compile.binaries import Compiled
from rlkernel.evaluator.judging.costs.least_work import WHOLE
from rlkernel.evaluator.judging.verdict import Facts, Times, combine
from rlkernel.evaluator.messages.children import StepTime
from rlkernel.evaluator.program.schema import Config, Function, Launch, Op, Program
from rlkernel.types import Closeness, Evaluation, OpFact, Seconds, Status

KERNEL = Function("kernel", "def kernel(): pass\n", 1, {})
LAUNCH = Launch(0, {}, (Config({}, {}, (1, 1, 1)),), 1)
PROGRAM = Program((KERNEL,), (), (), {}, (), (LAUNCH,), None)
BINARY = Compiled(
    "key", "kernel", ("y",), registers=32, spills=0, shared_bytes=0, num_warps=4, num_ctas=1, tf32=False, symbol="kernel",
    global_scratch_size=0, global_scratch_align=1, profile_scratch_size=0, parameters=(("y", "*fp32"),), tensordesc_meta=(),
)  # fmt: skip
ROWS = [StepTime(0, 50.0, function=0), StepTime(1, 150.0, op="aten.add.Tensor")]
FACTS = Facts(
    program=PROGRAM, kernels={0: BINARY}, rows=ROWS,
    live={0: True}, matches=True, other_mode_only=False, detail="", error=1e-7,
    times=Times("measured", 300.0, 100.0, 2.9, 3.1, trials=9, host_us=12.0, compiled_us=150.0),
    floor_us=10.0, reference_ops=(OpFact("aten.mul", 1, 300.0, 1.0),),
)  # fmt: skip


def test_measured_facts_stand_beside_the_status() -> None:
    found = combine(FACTS, Seconds())
    assert (found.status, found.timing, found.trials, found.host_us, found.compiled_us) == (
        Status.CORRECT,
        "measured",
        9,
        12.0,
        150.0,
    )
    assert (found.speedup, found.speedup_low, found.speedup_high) == (3.0, 2.9, 3.1)
    # coverage is a share of the steps' own sum, 50 of 200 us, whatever forward takes as a whole
    assert found.coverage == 0.25
    assert [(f.us, f.share) for f in found.launches] == [(50.0, 0.25)]


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"matches": False, "live": {}, "times": None}, Status.INCORRECT),
        ({"matches": False, "other_mode_only": True}, Status.INCONSISTENT),
        ({"same_work": False, "live": {}}, Status.INCONSISTENT),
        ({"live": {0: False}, "floor_us": 1e9}, Status.NO_KERNEL),
        ({"kernels": {0: replace(BINARY, stores=())}}, Status.NO_KERNEL),
        ({"unwritten": True}, Status.IMPLAUSIBLE),
        ({"floor_us": 100.1}, Status.IMPLAUSIBLE),
        ({"products": 101.0, "rows": [replace(ROWS[0], operations=30.0)]}, Status.IMPLAUSIBLE),
        ({"products": 99.0, "rows": [replace(ROWS[0], operations=30.0)]}, Status.CORRECT),
    ],
)
def test_what_is_wrong_comes_before_what_is_idle_before_what_is_impossible(change: dict[str, object], status: Status) -> None:
    assert combine(replace(FACTS, **change), Seconds()).status is status


@pytest.mark.parametrize(
    ("wanted", "drawn", "told"),
    [
        ("aten.dropout", "aten.relu.default", True),
        ("aten.dropout", "aten.bernoulli.p", True),
        ("aten.dropout", "aten.dropout.default", False),  # the same operator: something else is wrong
        ("aten.relu", "aten.relu.default", False),
    ],
)
def test_a_wrong_answer_to_a_random_reference_tells_whose_numbers_count(wanted: str, drawn: str, told: bool) -> None:
    program = replace(PROGRAM, forward=(LAUNCH, Op(drawn, (), {}, (1,))))
    wrong = replace(FACTS, program=program, matches=False, detail="wrong", reference_ops=(OpFact(wanted, 1, 300.0, 1.0),))
    assert ("draws random numbers by aten.dropout" in combine(wrong, Seconds()).detail) is told


def test_a_wrong_candidate_that_was_not_timed_still_tells_what_it_launches() -> None:
    rows = [StepTime(0, 0.0, function=0)]
    found = combine(replace(FACTS, matches=False, detail="output is wrong", rows=rows, times=None), Seconds())
    assert (found.status, found.detail, found.speedup, found.coverage) == (Status.INCORRECT, "output is wrong", None, None)
    assert [(f.kernel, f.us, f.live) for f in found.launches] == [("kernel", 0.0, True)]


def test_what_is_faster_than_physics_is_implausible_and_says_what_it_was_held_against() -> None:
    fast = combine(replace(FACTS, floor_us=101.0), Seconds())
    assert (fast.status, fast.detail) == (
        Status.IMPLAUSIBLE,
        "100.0 us is less than a launch and writing the outputs take (101.0 us)",
    )
    modelled = combine(replace(FACTS, floor_us=101.0, times=Times.modelled(300.0, 100.0)), Seconds())
    assert modelled.status is Status.IMPLAUSIBLE
    assert modelled.detail.startswith("100.0 us is less than the problem's data and arithmetic take (101.0 us); without a GPU, ")


def test_kernelbenchs_comparison_stands_beside_any_status() -> None:
    for matches in (True, False):
        found = combine(replace(FACTS, matches=matches, detail="wrong", close=Closeness.LOOSE), Seconds())
        assert (found.correct, found.kernelbench_close) == (matches, Closeness.LOOSE)
        assert Evaluation.from_json(found.to_json()) == found


def test_who_computes_less_for_an_element_at_full_shape_is_told_how_much_less() -> None:
    found = combine(replace(FACTS, effort=0.58), Seconds())
    assert found.status is Status.IMPLAUSIBLE
    assert found.detail.startswith("58% of what kernels compute for an element where results are compared is done at full shape")
    assert combine(replace(FACTS, effort=0.8), Seconds()).correct
    told = replace(FACTS, told=True)  # lengths in memory may leave less of each block
    assert combine(replace(told, effort=0.58), Seconds()).correct
    assert combine(replace(told, effort=0.48), Seconds()).status is Status.IMPLAUSIBLE


def test_what_leads_to_elements_stands_for_no_products_that_are_needed_whole() -> None:
    facts = replace(FACTS, products=100.0, least_share=WHOLE)
    less, all_of_it = (replace(ROWS[0], operations=104.0, of_products=work) for work in (94.0, 100.0))
    assert combine(replace(facts, rows=[less]), Seconds()).detail.startswith("94% of the operations of the reference's products")
    assert combine(replace(facts, rows=[all_of_it]), Seconds()).correct
    assert combine(replace(facts, rows=[less], least_share=0.3), Seconds()).correct


@pytest.mark.parametrize(
    ("strict", "tf32", "error", "told"),
    [(True, True, 3e-4, True), (True, True, 0.1, False), (True, False, 3e-4, False), (False, True, 3e-4, False)],
)
def test_a_small_error_of_a_product_in_tf32_is_told_where_nobody_may_use_it(
    strict: bool, tf32: bool, error: float, told: bool
) -> None:  # fmt: skip
    kernels = {0: replace(BINARY, tf32=tf32)}
    wrong = replace(FACTS, matches=False, times=None, strict=strict, error=error, kernels=kernels, detail="output is wrong")
    hint = '; its tl.dot computes in tf32, which strict precision does not allow: pass input_precision="ieee"'
    assert combine(wrong, Seconds()).detail == "output is wrong" + told * hint
