"""Values that host code reads: literals are computed, weights become numbers of the Program, inputs are refused in words."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rlkernel.evaluator.program.replay import Replay, StepFailed
from rlkernel.evaluator.program.scalars import BadNumber, compute
from rlkernel.evaluator.program.schema import Launch, Literal, Program, Scalar
from rlkernel.evaluator.program.values import ScalarRef
from rlkernel.evaluator.trace.candidate import Verdict
from rlkernel.evaluator.trace.reading import CHANGED, INPUT
from tests.evaluator.trace.test_candidate import program, traced

X = torch.tensor([[1.0, -2.0, 3.0], [0.5, 0.25, -0.125]])
GAIN = "self.g = nn.Parameter(torch.tensor(1.5)); self.register_buffer('k', torch.tensor(4))"
HEAD = "import math"


def answer(made: Program, weights: dict[str, Any]) -> Any:
    """What a Program gives for X once its parameters and buffers have the values `weights`."""
    replay = Replay(made, torch.device("cpu"), lambda *call: None)
    state = replay.init([], 0)
    for name, value in weights.items():
        state[name].fill_(value)
    replay.prepare([X + 100.0], 0)
    return replay.forward([X], 0)


_NUMBERS = ["self.g.item()", "float(self.g)", "self.k.item()", "int(self.k.item())", "self.g.exp().item()", "2", "0.25", "-3"]
_FUNCTIONS = ["-", "abs", "math.exp", "math.floor", "float", "round", "math.tanh"]
_TERMS = st.recursive(
    st.sampled_from(_NUMBERS),
    lambda inner: (
        st.builds("({} {} {})".format, inner, st.sampled_from(["+", "-", "*", "/", "//", "%"]), inner)
        | st.builds("{}({})".format, st.sampled_from(_FUNCTIONS), inner)
        | st.builds("{}({}, {})".format, st.sampled_from(["min", "max"]), inner, inner)
    ),
    max_leaves=5,
)


@settings(max_examples=60)
@given(term=_TERMS, gain=st.sampled_from([0.5, -2.25, 3.0]), count=st.integers(1, 7))
def test_arithmetic_on_the_host_is_python_s_on_the_weights_of_the_day(term: str, gain: float, count: int) -> None:
    class Weights:
        g, k = torch.tensor(gain), torch.tensor(count)

    try:
        expected = float(eval(term, {"self": Weights, "math": math}))  # the test's own text
    except (ArithmeticError, ValueError):
        return
    if not abs(expected) < 1e30:
        return
    try:
        made = program(f"return x * 0.0 + {term}", init=GAIN, head=HEAD)
    except Verdict as verdict:  # what the constants alone make of it
        assert "Error" in verdict.detail
        return
    assert answer(made, {"g": gain, "k": count})[0, 0].item() == pytest.approx(expected, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(
    ("forward", "factor"),
    [
        ("return x * int(torch.prod(torch.tensor(x.shape)).item())", 6.0),  # 2 * 3
        ("return x * sum(torch.arange(4).tolist())", 6.0),  # 0 + 1 + 2 + 3
        ("return x * float(torch.tensor([2.0, 4.0]).numpy().mean())", 3.0),
        ("return x * (2 if torch.tensor(3) > 2 else 5)", 2.0),
        ("return x * (7 if torch.equal(torch.ones(2), torch.full((2,), 1.0)) else 5)", 7.0),
    ],
)
def test_what_depends_on_literals_alone_is_computed_while_tracing(forward: str, factor: float) -> None:
    made = program(forward)
    assert not any(isinstance(step, Scalar) for step in made.once)
    assert answer(made, {}).tolist() == (X * factor).tolist()


def test_an_object_with_a_modulus_of_its_own_becomes_the_int_that_it_says() -> None:
    """Such an attribute tells addresses from other numbers, of which `int` makes no plain ones."""
    ring = "class Ring:\n    modulus = 7\n    def __int__(self):\n        return 5\n"
    found = program("return x + int(Ring())", head=ring)
    assert torch.equal(answer(found, {}), X + 5)


def test_a_number_is_read_anew_with_every_construction_and_never_baked() -> None:
    made = program("return x * self.g.item()", init=GAIN)
    assert [answer(made, {"g": g})[0, 0].item() for g in (1.5, -4.0)] == [1.5, -4.0]
    folded = program("return x * self.h", init=f"{GAIN}; self.h = self.g.item() * 2")
    assert [step.operation for step in folded.init if isinstance(step, Scalar)] == ["item", "mul"]
    assert any(isinstance(step, Literal) for step in folded.init)


def test_a_tensor_of_numbers_and_a_fill_take_them() -> None:
    forward = (
        "y = torch.tensor([self.g.item(), 2.0, self.g.item() * 2])\nreturn x * y.to(x.device) + torch.full_like(x, self.k.item())"
    )
    assert answer(program(forward, init=GAIN), {"g": 0.5, "k": 3})[0].tolist() == [3.5, -1.0, 6.0]  # 1 * 0.5 + 3 and so on


@pytest.mark.parametrize(
    ("forward", "why"),
    [
        ("return x * x.sum().item()", INPUT),
        ("return x * (x * self.g).max().item()", INPUT),
        ("return x if self.g.item() > 0 else -x", "host code branches on a parameter's value"),
        ("return x if self.g > 0 else -x", "host code branches on a parameter's value"),
        ("self.k += 1\nreturn x * self.k.item()", CHANGED),
        ("y = x * self.k.item()\nself.k += 1\nreturn y", CHANGED),
        ("return x * torch.rand(()).item()", "the host reads a random number that forward draws"),
        ("return x + torch.zeros(self.k.item(), device=x.device).sum()", "a size depends on a parameter's value"),
        ("return sum([x for _ in range(self.k.item())])", "the length of a loop depends on a parameter's value"),
        ("return x * self.w.tolist()[0]", "the host reads a tensor of parameters"),
    ],
)
def test_other_values_are_refused_and_the_message_says_what_to_do(forward: str, why: str) -> None:
    with pytest.raises(Verdict) as refused:
        program(forward, init=f"{GAIN}; self.w = nn.Parameter(torch.ones(3))")
    assert why in refused.value.detail
    assert refused.value.status == "untraceable"


def test_numbers_without_a_result_fail_when_they_are_computed() -> None:
    made = program("return x * (1 / self.g.item())", init=GAIN)
    assert answer(made, {"g": 4.0})[0, 0].item() == 0.25
    with pytest.raises(StepFailed, match="division by zero"):
        answer(made, {"g": 0.0})
    for operation, args in (
        ("pow", (9, 9**9)),
        ("log", (0.0,)),
        ("item", (torch.ones(1, dtype=torch.complex64),)),
        ("pow", (-2.0, 0.5)),
    ):
        with pytest.raises(BadNumber):
            compute(operation, args)


LAUNCHED = """import triton
import triton.language as tl
@triton.jit
def scale(x_ptr, g_ptr, o_ptr, n: tl.constexpr):
    i = tl.arange(0, 8)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n) * tl.load(g_ptr), mask=i < n)
"""


def test_a_weight_that_a_kernel_of_another_mode_was_given_may_be_read() -> None:
    """In train mode a kernel takes the tensor, in eval mode another one its value: no call does both."""
    body = (
        "o = torch.empty_like(x)\nif self.training:\n    scale[(1,)](x, self.g, o, n=6)\n    return o\nreturn x * self.g.item()"
    )
    found = traced(body, init=GAIN, head=LAUNCHED)
    assert found.other is not None and [type(step) for step in found.other.prepare if isinstance(step, Scalar)] == [Scalar]
    both = body.replace("return o", "return o * self.g.item()")
    with pytest.raises(Verdict, match="a parameter or buffer that forward may change"):
        traced(both, init=GAIN, head=LAUNCHED)


SCALED_BY = """import triton
import triton.language as tl
@triton.jit
def scale(x_ptr, o_ptr, by: tl.constexpr, n: tl.constexpr):
    twice: tl.constexpr = by * 2
    i = tl.arange(0, 8)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n) * twice, mask=i < n)
"""


def test_a_constant_that_is_a_number_of_weights_is_an_argument_of_run_time() -> None:
    made = program("o = torch.empty_like(x)\nscale[(1,)](x, o, self.g.item(), n=6)\nreturn o", init=GAIN, head=SCALED_BY)
    (launch,) = [step for step in made.forward if isinstance(step, Launch)]
    assert isinstance(launch.args["by"], ScalarRef) and launch.configs[0].constants == {"n": 6}
    source = made.functions[launch.function].source
    assert "by, n: tl.constexpr" in source and "twice = by * 2" in source
    with pytest.raises(Verdict, match="constexpr argument n depends on a parameter's value; pass it as an argument of run time"):
        program("scale[(1,)](x, x, 1.5, n=self.k.item())\nreturn x", init=GAIN, head=SCALED_BY)
