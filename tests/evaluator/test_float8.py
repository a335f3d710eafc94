"""References that take and give float8: codes, which are given as they are drawn and compared by their values."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from rlkernel.evaluator.judging.degenerate import degenerate
from rlkernel.evaluator.judging.errors.comparison import compare_tensor
from rlkernel.evaluator.judging.errors.kernelbench import closeness
from rlkernel.evaluator.judging.errors.own_error import own_error
from rlkernel.evaluator.judging.errors.tolerance import tolerance
from rlkernel.evaluator.judging.inputs.nudging import nudged
from rlkernel.evaluator.judging.inputs.stress import side, stressed
from rlkernel.evaluator.judging.references.reference_calls import constants
from rlkernel.evaluator.messages.judgement import Stress
from rlkernel.evaluator.pool import Pool
from rlkernel.evaluator.program.codes import VALUED, valued, widened
from rlkernel.reference import load_reference
from rlkernel.types import Closeness, Evaluation, Precision, Problem, Status
from tests.evaluator.judging.test_drawing import drawn_rounds

BOTH = [torch.float8_e4m3fn, torch.float8_e5m2]
REFERENCE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.randn(64).to(torch.DTYPE))
        self.register_buffer("gain", torch.ones(64))

    def forward(self, codes, scale):
        values = codes.float() * scale[:, None]
        return (values * self.weight.float() * self.gain).to(torch.DTYPE), values

def get_inputs():
    return [torch.randn(128, 64).to(torch.DTYPE), torch.rand(128) + 0.5]

def get_init_inputs():
    return []
"""
KERNEL = """
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def kernel(codes, scale, weight, gain, out, values, COLS: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, COLS)
    v = tl.load(codes + row * COLS + at).to(tl.float32) * tl.load(scale + row)
    tl.store(values + row * COLS + at, v)
    result = v * tl.load(weight + at).to(tl.float32) * tl.load(gain + at)
    tl.store(out + row * COLS + at, result.to(out.dtype.element_ty))

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.randn(64).to(torch.DTYPE))
        self.register_buffer("gain", torch.ones(64))

    def forward(self, codes, scale):
        out, values = torch.empty_like(codes), torch.empty_like(codes, dtype=torch.float32)
        kernel[(codes.shape[0],)](codes, scale, self.weight, self.gain, out, values, COLS=codes.shape[1])
        return out, values
"""
WRONG = {
    "columns are zero": ("result.to(", "tl.where(at < 8, 0.0, result).to("),
    "a scale is left out": (" * tl.load(scale + row)", ""),
    "codes are taken a step too far": ("result.to(", "(result * 1.5).to("),
    "a constant buffer is ignored": (" * tl.load(gain + at)", ""),
}


def of(text: str, dtype: torch.dtype) -> str:
    return text.replace("torch.DTYPE", str(dtype))


async def judge(pool: Pool, dtype: torch.dtype, candidate: str) -> Evaluation:
    return await pool.evaluate(Problem("mine/problem", 1, "validation", of(REFERENCE, dtype)), of(candidate, dtype))


def test_codes_are_given_as_they_are_drawn() -> None:
    for dtype in (*VALUED, torch.float8_e8m0fnu):
        codes = torch.tensor([0.5, 1.0, 2.0, 0.25]).to(dtype)
        for stress in (Stress.SCALED, Stress.SHIFTED):
            assert stressed([codes], stress)[0] is codes
        assert (side(codes), nudged([codes])[0] is codes) == (None, True)


def test_codes_of_a_module_are_no_constants_and_stay_where_it_is_widened() -> None:
    model = nn.Linear(4, 4)
    model.register_buffer("codes", torch.ones(4).to(torch.float8_e4m3fn))
    model.register_buffer("scale", torch.ones(4))
    assert [*constants(model)] == ["scale"]
    widened(model)
    found = {name: t.dtype for name, t in model.state_dict().items()}
    assert found == {"weight": torch.float64, "bias": torch.float64, "codes": torch.float8_e4m3fn, "scale": torch.float64}


@pytest.mark.parametrize("dtype", BOTH)
def test_one_step_in_few_codes_is_right_and_cut_off_codes_are_wrong(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x = torch.randn(4096)
    exact = x.to(dtype)
    allowed = tolerance(dtype, own_error(exact, exact), Precision.PYTORCH)

    def matches(found: torch.Tensor) -> bool:
        return compare_tensor(found, exact, exact, allowed=allowed, overlapping=False, where="output").matches

    assert (matches(exact), matches(x.bfloat16().to(dtype))) == (True, True), "a step where bfloat16 lies at a middle"
    # Rounded towards zero: half of all codes are a step below.
    step = valued(exact).abs() > x.abs()
    assert not matches(torch.where(step, raw(exact) - 1, raw(exact)).view(dtype))
    assert not matches((x * 2).to(dtype))
    zeroed = exact.clone()
    zeroed[int(x.abs().argmax())] = 0.0
    assert not matches(zeroed)


def raw(codes: torch.Tensor) -> torch.Tensor:
    return codes.view(torch.uint8)


def test_scales_of_powers_of_two_must_be_equal() -> None:
    exact = torch.tensor([0.5, 1.0, 2.0, 4.0]).to(torch.float8_e8m0fnu)
    other = exact.clone()
    raw(other)[2] += 1
    allowed = tolerance(exact.dtype, own_error(exact, exact), Precision.PYTORCH)
    tell = [compare_tensor(f, exact, exact, allowed=allowed, overlapping=False, where="output") for f in (exact, other)]
    assert (tell[0].matches, tell[1].detail) == (True, "output: 1 of 4 elements differ")


def test_kernelbenchs_rule_sees_values() -> None:
    exact = torch.randn(64).to(torch.float8_e5m2)
    assert closeness([exact.clone()], [exact]) is Closeness.TIGHT
    assert closeness([(exact.float() * 1.5).to(exact.dtype)], [exact]) is Closeness.NO


@pytest.mark.parametrize("dtype", BOTH)
def test_rounds_scale_what_is_no_code(dtype: torch.dtype) -> None:
    rounds = drawn_rounds(load_reference(of(REFERENCE, dtype), small=False), Precision.PYTORCH, "key", other=False)
    assert max(float(valued(r.inputs[0]).abs().max()) for r in rounds) < 8.0, "normal numbers, never times 8"
    assert max(float(r.inputs[1].abs().max()) for r in rounds) > 2.0, "between 0.5 and 1.5 where they are not scaled"


@pytest.mark.parametrize("dtype", BOTH)
def test_a_reference_of_codes_is_looked_at_before_training(dtype: torch.dtype) -> None:
    assert degenerate(Problem("mine", 1, "train", of(REFERENCE, dtype)), allow_neutral=True) is None


@pytest.mark.anyio
@pytest.mark.parametrize("dtype", BOTH)
async def test_kernels_on_codes(pool: Pool, dtype: torch.dtype) -> None:
    honest = await judge(pool, dtype, KERNEL)
    assert honest.status is Status.CORRECT, honest.detail
    for what, (part, other) in WRONG.items():
        assert part in KERNEL
        found = await judge(pool, dtype, KERNEL.replace(part, other))
        assert found.status is Status.INCORRECT, (what, found.detail)


@pytest.mark.gpu
@pytest.mark.anyio
@pytest.mark.parametrize("dtype", BOTH)
async def test_kernels_on_codes_on_a_gpu(gpu_pool: Pool, dtype: torch.dtype) -> None:
    itself = await judge(gpu_pool, dtype, REFERENCE + "\n\nclass ModelNew(Model):\n    pass\n")
    assert (itself.status, itself.matches) == (Status.NO_KERNEL, True), itself.detail
    await test_kernels_on_codes(gpu_pool, dtype)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("other", "found"),
    [
        ("0", (Status.COMPILE_ERROR, "line 10: AssertionError: cannot cast int32[constexpr[64]] to <['64'], fp8e4nv>")),
        ("0.0", (Status.CORRECT, "")),
    ],
)
async def test_a_whole_number_in_place_of_a_code_is_refused_as_triton_refuses_it(
    pool: Pool, other: str, found: tuple[Status, str]
) -> None:
    """Triton casts floating-point numbers to float8, and whole numbers do not become any."""
    load = "tl.load(codes + row * COLS + at)"
    assert load in KERNEL
    masked = KERNEL.replace(load, f"tl.load(codes + row * COLS + at, mask=at < COLS, other={other})")
    result = await judge(pool, torch.float8_e4m3fn, masked)
    assert (result.status, result.detail) == found
