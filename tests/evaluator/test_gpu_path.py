"""The GPU path on a real GPU: facts, verdicts in time, recovery, baselines."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from rlkernel.evaluator.config import PATIENT, EvaluatorConfig, Limits
from rlkernel.evaluator.pool import Pool, open_pool
from rlkernel.types import Precision, Problem, Status
from tests.red_team.cases import load

HOSTILE = Path(__file__).parents[1] / "red_team" / "hostile"
pytestmark = [pytest.mark.gpu, pytest.mark.anyio]


@pytest.fixture(scope="module")
async def gpu(anyio_backend: str) -> AsyncIterator[Pool]:
    async with open_pool(device="cuda:0", jobs=4, config=EvaluatorConfig(limits=Limits(forward_seconds=1.0))) as pool:
        yield pool


def hostile(name: str) -> str:
    return (HOSTILE / f"{name}.py").read_text() + f"\n# {time.monotonic()}\n"


async def test_facts_of_an_honest_relu(gpu: Pool, relu: Problem) -> None:
    result = await gpu.evaluate(relu, hostile("honest"))
    assert (result.status, result.timing, result.matches) == (Status.CORRECT, "measured", True)
    assert result.trials is not None and result.trials >= 5
    assert result.speedup is not None and 0.6 < result.speedup < 1.25, "both move 128 MiB, in smaller pieces here than torch does"
    assert result.speedup_low is not None and result.speedup_high is not None
    assert result.speedup_low < result.speedup < result.speedup_high < 1.1 * result.speedup_low
    assert result.candidate_us is not None and 128 * 2**20 / 5.5e6 < result.candidate_us < 200, "not faster than the memory"
    assert result.coverage == pytest.approx(1.0)
    assert [(f.kernel, f.calls, f.live) for f in result.launches] == [("kernel", 1, True)]
    assert [op.op for op in result.reference_ops] == ["aten.relu"]
    assert 0 < result.seconds.gpu < 1.0 and result.host_us is not None and result.host_us > 0


LARGE = """
import numpy as np
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [{drawn}]

def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(
    ("drawn", "most_seconds"),
    [
        ("torch.zeros(100_000_000, device='cpu').uniform_(-100, 100)", 1.0),
        ("torch.from_numpy(np.random.standard_normal(30_000_000).astype(np.float32))", 30.0),  # a second each, on the host
        ("torch.rand(50_000_000, generator=torch.Generator().manual_seed(1)) - 0.5", 30.0),
    ],
)
async def test_inputs_that_a_host_draws_for_seconds_leave_an_honest_candidate_its_time(
    gpu: Pool, drawn: str, most_seconds: float
) -> None:
    result = await gpu.evaluate(Problem("mine/large", 1, "train", LARGE.format(drawn=drawn)), hostile("honest"))
    assert result.status is Status.CORRECT, result.detail
    assert result.trials is not None and result.trials >= 5
    assert result.speedup is not None and 0.6 < result.speedup < 1.5
    assert result.seconds.gpu < most_seconds


async def test_a_fault_costs_one_slot_and_the_next_candidate_finds_a_new_runner(gpu: Pool, relu: Problem) -> None:
    before = await gpu.evaluate(relu, hostile("honest") + "# once\n")  # the first runner has started by then
    starts = gpu.runners[0].starts
    fault = await gpu.evaluate(relu, hostile("gpu_illegal_address"))
    since = time.perf_counter()
    after = await gpu.evaluate(relu, hostile("honest"))
    assert fault.status is Status.OUT_OF_BOUNDS, fault.detail
    assert fault.seconds.gpu < 1.5
    assert before.status is after.status is Status.CORRECT
    assert time.perf_counter() - since < 10.0  # 7.5 beside fourteen other processes
    assert gpu.runners[0].starts == starts + 1


async def test_a_hang_is_a_verdict_within_its_deadline_and_a_second(gpu: Pool, relu: Problem) -> None:
    result = await gpu.evaluate(relu, hostile("loop_loaded"))
    assert result.status is Status.TIMEOUT, result.detail
    assert result.seconds.gpu < 1.0 + 1.0


GATES = """
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def copy(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)

@triton.jit
def relu(x, y, gates, n, factor, GATES: tl.constexpr, BLOCK: tl.constexpr):
    for gate in range(0, GATES):
        while tl.load(gates + gate, volatile=True) != 7 + gate:
            pass
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.maximum(tl.load(x + i, mask=i < n), 0.0) * factor, mask=i < n)

"""
GATE = """
@triton.jit
def open_{gate}(gates):
    tl.store(gates + {gate}, 7 + {gate})

"""
GATED = """
class ModelNew(nn.Module):
    def forward(self, x):
        n, blocks = x.numel(), triton.cdiv(x.numel(), 1024)
        y, unused, gates = torch.empty_like(x), torch.empty_like(x), torch.empty(12, dtype=torch.int32, device=x.device)
        copy[(blocks,)](x, unused, n, BLOCK=1024)
{opened}
        relu[(blocks,)](x, y, gates, n, {factor}, GATES=12, BLOCK=1024)
        return y
"""


def gated(factor: float) -> str:
    """A relu that never ends without any one of 12 kernels, beside a copy that nothing needs."""
    kernels = "".join(GATE.format(gate=gate) for gate in range(12))
    opened = "\n".join(f"        open_{gate}[(1,)](gates)" for gate in range(12))
    return f"{GATES}{kernels}{GATED.format(opened=opened, factor=factor)}\n# {time.monotonic()}\n"


async def test_kernels_that_wait_for_what_is_left_out_cost_two_runners_and_no_decoy_counts(gpu: Pool, relu: Problem) -> None:
    await gpu.evaluate(relu, hostile("honest"))
    starts = gpu.runners[0].starts
    right = await gpu.evaluate(relu, gated(1.0))
    assert right.status is Status.CORRECT, right.detail
    live = {fact.kernel: fact.live for fact in right.launches}
    assert live["relu"] and not live["copy"] and sum(live.values()) == 1 + 2, live
    await gpu.evaluate(relu, hostile("honest"))
    assert gpu.runners[0].starts == starts + 2


IN_PIECES = """
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def open_gate(gate):
    tl.store(gate, 7)

@triton.jit
def wait(gate):
    while tl.load(gate, volatile=True) != 7:
        pass

@triton.jit
def relu(x, y, start, n, BLOCK: tl.constexpr):
    i = start + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.maximum(tl.load(x + i, mask=i < n), 0.0), mask=i < n)

class ModelNew(nn.Module):
    def forward(self, x):
        n, piece = x.numel(), 10240
        y, gate = torch.empty_like(x), torch.empty(1, dtype=torch.int32, device=x.device)
        open_gate[(1,)](gate)
        wait[(1,)](gate)
        for start in range(0, n, piece):
            relu[(10,)](x, y, start, n, BLOCK=1024)
        return y
"""


async def test_more_launches_than_the_driver_holds_behind_one_that_waits_hide_nothing(gpu: Pool, relu: Problem) -> None:
    """1,639 launches stand behind the kernel that never ends where `open_gate` is left out."""
    await gpu.evaluate(relu, hostile("honest"))
    starts = gpu.runners[0].starts
    result = await gpu.evaluate(relu, IN_PIECES + f"\n# {time.monotonic()}\n")
    assert result.status is Status.CORRECT, result.detail
    assert {fact.kernel: fact.live for fact in result.launches} == {"open_gate": True, "wait": False, "relu": True}
    await gpu.evaluate(relu, hostile("honest"))
    assert gpu.runners[0].starts == starts + 1


async def test_a_wrong_candidate_costs_no_runner_whatever_waits_in_it(gpu: Pool, relu: Problem) -> None:
    await gpu.evaluate(relu, hostile("honest"))
    starts = gpu.runners[0].starts
    assert (await gpu.evaluate(relu, gated(1.5))).status is Status.INCORRECT
    await gpu.evaluate(relu, hostile("honest"))
    assert gpu.runners[0].starts == starts


RECURRENCE = """
import torch
import torch.nn as nn

B, T, H = 16, 2500, 64

class Model(nn.Module):
    def __init__(self, H):
        super().__init__()
        self.a = nn.Parameter(torch.rand(H))

    def forward(self, x):
        h, found = torch.zeros_like(x[:, 0]), []
        for t in range(x.shape[1]):
            h = torch.tanh(torch.addcmul(x[:, t], self.a, h))
            found.append(h)
        return torch.stack(found, 1)

def get_inputs():
    return [torch.randn(B, T, H)]

def get_init_inputs():
    return [H]
"""
STEP_BY_STEP = """
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def step(x, a, h, o, n, sx, so, H: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    r, c, m = i // H, i % H, i < n
    v = tl.load(x + r * sx + c, mask=m) + tl.load(a + c, mask=m) * tl.load(h + i, mask=m)
    e = tl.exp(-2 * tl.abs(v))
    v = tl.where(v < 0, -(1 - e) / (1 + e), (1 - e) / (1 + e))
    tl.store(h + i, v, mask=m)
    tl.store(o + r * so + c, v, mask=m)

class ModelNew(nn.Module):
    def __init__(self, H):
        super().__init__()
        self.a = nn.Parameter(torch.rand(H))

    def forward(self, x):
        h, o = torch.zeros_like(x[:, 0]), torch.empty_like(x)
        for t in range(2500):
            step[(4,)](x[:, t], self.a, h, o[:, t], h.numel(), x.stride(0), o.stride(0), H=64, BLOCK=256)
        return o
"""


async def test_a_kernel_that_is_launched_for_each_of_2500_time_steps_is_judged_at_full_length() -> None:
    """The reference takes 3 operators per step, and the candidate two views and a launch."""
    async with open_pool(device="cuda:0", jobs=1, config=EvaluatorConfig(limits=PATIENT)) as pool:
        result = await pool.evaluate(Problem("mine/recurrence", 3, "train", RECURRENCE), STEP_BY_STEP)
    assert (result.status, result.sizes) == (Status.CORRECT, {}), result.detail
    assert [fact.calls for fact in result.launches] == [2500]
    assert result.seconds.gpu < 10.0


async def test_neighbours_of_a_fault_are_not_affected(gpu: Pool, relu: Problem) -> None:
    found: list[Status] = []

    async def one(code: str) -> None:
        found.append((await gpu.evaluate(relu, code)).status)

    async with anyio.create_task_group() as tasks:
        for index in range(6):
            tasks.start_soon(one, hostile("honest") + f"# {index}\n")
            if index % 3 == 0:
                tasks.start_soon(one, hostile("gpu_misaligned") + f"# {index}\n")
    assert found.count(Status.CORRECT) == 6


async def test_a_cancelled_evaluation_leaves_a_working_pool(gpu: Pool, relu: Problem) -> None:
    with anyio.move_on_after(0.5):
        await gpu.evaluate(relu, hostile("loop_loaded"))
    assert (await gpu.evaluate(relu, hostile("honest"))).status is Status.CORRECT


async def test_baselines_are_stored_with_provenance_and_torch_compile_beside(tmp_path: Path, relu: Problem) -> None:
    config = EvaluatorConfig(compiled=True)
    async with open_pool(device="cuda:0", jobs=1, cache_dir=tmp_path, config=config) as pool:
        result = await pool.evaluate(relu, hostile("honest"))
    assert result.compiled_us is not None and 10 < result.compiled_us < 200
    (line,) = (tmp_path / "baselines.jsonl").read_text().splitlines()
    assert pool.runners[0].gpu.uuid in line and '"compiled_us": ' in line


async def test_a_problem_is_studied_once_though_two_processes_meet_it(tmp_path: Path, relu: Problem) -> None:
    for candidate in ("one", "another"):
        async with open_pool(device="cuda:0", jobs=1, cache_dir=tmp_path) as pool:
            result = await pool.evaluate(relu, hostile("honest") + f"\n# {candidate}\n")
        assert result.status is Status.CORRECT and not result.cached
    (line,) = (tmp_path / "studies.jsonl").read_text().splitlines()
    assert json.loads(line)["problem"] == relu.name


PRECISIONS = {
    ("honest", "matmul_tf32"): (True, False, True),
    ("honest", "conv1d_tf32"): (True, False, True),
    ("honest", "flash_causal_tf32"): (True, False, True),
    ("honest", "matmul_ieee"): (True, True, True),
    ("hostile", "dot_bf16"): (False, False, None),
    ("hostile", "conv1d_bf16"): (False, False, None),
    ("hostile", "dot_fp16"): (False, False, None),
    ("hostile", "conv1d_half"): (False, False, None),
}
"""A case of the red team -> whether it is right under pytorch, strict and tf32; None: nothing is promised."""


@pytest.mark.parametrize("index", range(3))
async def test_each_precision_on_the_gpu(index: int) -> None:
    precision = list(Precision)[index]
    async with open_pool(device="cuda:0", jobs=2, config=EvaluatorConfig(precision=precision)) as pool:
        for (folder, name), right in PRECISIONS.items():
            case = load(folder)[name]
            result = await pool.evaluate(case.problem, case.code)
            if right[index] is not None:
                assert result.correct is right[index], (name, result.detail)
            assert result.kernelbench_close is not None, name


@pytest.mark.parametrize(("precision", "tf32"), [(Precision.PYTORCH, True), (Precision.STRICT, False)])
async def test_a_candidates_own_product_may_use_tf32_where_the_precision_allows_it(precision: Precision, tf32: bool) -> None:
    """tf32 keeps 10 bits of 23: its error is above 1e-5, and float32's below."""
    case = load("hostile")["flags_tf32"]
    async with open_pool(device="cuda:0", jobs=1, config=EvaluatorConfig(precision=precision)) as pool:
        result = await pool.evaluate(case.problem, case.code)
    assert result.correct, result.detail
    assert result.max_error is not None and (result.max_error > 1e-5) is tf32


@pytest.mark.parametrize("name", ["diag_matmul", "product_sum_as_matvec"])
async def test_algebra_may_win_on_a_gpu(gpu: Pool, name: str) -> None:
    case = load("honest")[name]
    result = await gpu.evaluate(case.problem, case.code)
    assert result.status is Status.CORRECT, result.detail
    assert result.speedup is not None and result.speedup > 1.3  # 1.8 beside eleven other processes
