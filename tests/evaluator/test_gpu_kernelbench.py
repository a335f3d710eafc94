"""What KernelBench needs of the GPU path: recurrent layers, state that forward replaces, long forwards, the whole of the card."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlkernel.evaluator.config import EvaluatorConfig
from rlkernel.evaluator.pool import Pool, open_pool
from rlkernel.types import Evaluation, Problem, Status

pytestmark = [pytest.mark.gpu, pytest.mark.anyio]
HEAD = "import torch\nimport triton\nimport triton.language as tl\nfrom torch import nn\n"
SAME = "\n\nclass ModelNew(Model):\n    pass\n"


def chain(length: int) -> str:
    """A forward of `length` operators."""
    return (
        HEAD
        + f"""
LENGTH, N = {length}, 1 << 20

class Model(nn.Module):
    def forward(self, x):
        for _ in range(LENGTH):
            x = x + 1.0
        return x

def get_inputs():
    return [torch.randn(N)]

def get_init_inputs():
    return []
"""
    )


FUSED = (
    HEAD
    + """
@triton.jit
def add(x, out, n, LENGTH: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    for _ in range(LENGTH):
        value += 1.0
    tl.store(out + at, value, mask=at < n)

class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        add[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), LENGTH=150, BLOCK=1024)
        return out
"""
)
LSTM = (
    HEAD
    + """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.LSTM(64, 128, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(256, 10)

    def forward(self, x):
        return self.head(self.layer(x)[0][:, -1])

def get_inputs():
    return [torch.randn(16, 64, 64)]

def get_init_inputs():
    return []
"""
)
CELL = (
    HEAD
    + """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = torch.randn(256, 512)
        self.linear = nn.Linear(512, 512)

    def forward(self, x):
        self.hidden = torch.tanh(self.linear(x + self.hidden))
        return self.hidden * 2

def get_inputs():
    return [torch.randn(256, 512)]

def get_init_inputs():
    return []
"""
)


LENGTHS = (
    HEAD
    + """
class Model(nn.Module):
    def forward(self, x, lengths):
        rows = []
        for row in range(32):
            length = LENGTH
            rows.append(x[row, :length].sum(0))
        return torch.stack(rows)

def get_inputs():
    return [torch.randn(32, 512, 256), torch.full((32,), 500)]

def get_init_inputs():
    return []
"""
)
RAGGED = (
    HEAD
    + """
@triton.jit
def sums(x, lengths, out, ROWS, COLS, BLOCK: tl.constexpr):
    one, at = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    length = tl.load(lengths + one)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(ROWS):
        total += tl.load(x + (one * ROWS + row) * COLS + at, mask=(at < COLS) & (row < length), other=0.0)
    tl.store(out + one * COLS + at, total, mask=at < COLS)

class ModelNew(nn.Module):
    def forward(self, x, lengths):
        out = torch.empty(x.shape[0], x.shape[2], device=x.device)
        sums[(x.shape[0], 4)](x, lengths, out, x.shape[1], x.shape[2], BLOCK=64)
        return out
"""
)
CHECKED = (
    HEAD
    + """
class Model(nn.Module):
    def forward(self, x):
        a = x @ x.mT + 64 * torch.eye(64, device=x.device)
        solved = torch.linalg.solve(a, x)
        return solved, torch.linalg.cholesky(a), torch.linalg.lu_factor(a)[0], torch.inverse(a)

def get_inputs():
    return [torch.randn(8, 64, 64)]

def get_init_inputs():
    return []
"""
)


async def judge(pool: Pool, reference: str, candidate: str) -> Evaluation:
    return await pool.evaluate(Problem("mine/problem", 1, "validation", reference), candidate)


OWN_NUMBERS = (
    HEAD
    + """
import numpy as np

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.from_numpy(np.random.default_rng(0).standard_normal(512, dtype=np.float32)))

    def forward(self, x, y):
        return torch.tanh(x * self.weight) + y

def get_inputs():
    generator = torch.Generator().manual_seed(0)
    noise = torch.from_numpy(np.random.RandomState(0).randn(256, 512).astype(np.float32))
    return [torch.randn(256, 512, generator=generator) + noise, torch.randn(256, 512)]

def get_init_inputs():
    return []
"""
)
THEMSELVES = {"lstm": LSTM, "gru": LSTM.replace("nn.LSTM", "nn.GRU"), "cell": CELL, "checked": CHECKED, "numbers": OWN_NUMBERS}


@pytest.mark.parametrize("reference", THEMSELVES.values(), ids=THEMSELVES)
async def test_a_reference_is_itself(gpu_pool: Pool, reference: str) -> None:
    found = await judge(gpu_pool, reference, reference + SAME)
    assert (found.status, found.matches, found.timing) == (Status.NO_KERNEL, True, "measured"), found.detail
    assert found.speedup == pytest.approx(1.0, abs=0.1)


async def test_state_that_is_not_kept_is_missed(gpu_pool: Pool) -> None:
    forgets = (CELL + SAME).replace(
        "    pass\n", "    def forward(self, x):\n        return torch.tanh(self.linear(x + self.hidden)) * 2\n"
    )
    found = await judge(gpu_pool, CELL, forgets)
    assert (found.status, "hidden after forward" in found.detail) == (Status.INCORRECT, True), found.detail


@pytest.mark.parametrize("length", [90, 150, 3000])
async def test_long_forwards_have_a_time_without_gaps(gpu_pool: Pool, length: int) -> None:
    found = await judge(gpu_pool, chain(length), chain(length) + SAME)
    assert (found.status, found.matches, found.timing) == (Status.NO_KERNEL, True, "measured"), found.detail
    assert found.speedup == pytest.approx(1.0, abs=0.05)
    assert found.reference_us is not None and 1.0 < found.reference_us / length < 10.0, "8 MiB from L2 and one launch each"
    assert [op.calls for op in found.ops] == [length]


async def test_a_kernel_for_a_long_forward(gpu_pool: Pool) -> None:
    found = await judge(gpu_pool, chain(150), FUSED)
    assert found.status is Status.CORRECT, found.detail
    assert found.speedup is not None and found.speedup > 20


async def test_a_problem_of_half_of_the_cards_memory(gpu_pool: Pool) -> None:
    # Inputs and outputs of a fifteenth of the memory each, and float64 copies of both twice.
    elements = gpu_pool.config.limits.gpu_memory_bytes // 60
    reference = chain(1).replace("1 << 20", f"({elements} // 64, 64)").replace("torch.randn(N)", "torch.rand(*N)")
    found = await judge(gpu_pool, reference, reference + SAME)
    assert (found.status, found.matches) == (Status.NO_KERNEL, True), found.detail
    assert not found.sizes


async def test_a_profile_that_is_made_of_the_card_gives_the_same_verdicts(gpu_pool: Pool) -> None:
    pairs = [(chain(150), FUSED), (LSTM, LSTM + SAME), (chain(2), FUSED)]
    config = replace(EvaluatorConfig(), profile="card")
    async with open_pool(device="cuda:0", jobs=1, config=config) as made:
        assert made.profile.arch == gpu_pool.profile.arch
        assert made.profile.processors == gpu_pool.profile.processors
        assert made.profile.shared_bytes == gpu_pool.profile.shared_bytes
        assert made.profile.dram_bytes_per_us == pytest.approx(gpu_pool.profile.dram_bytes_per_us, rel=0.1)
        for reference, candidate in pairs:
            mine, named = await judge(made, reference, candidate), await judge(gpu_pool, reference, candidate)
            assert mine.status is named.status, (mine.detail, named.detail)
            if named.speedup is not None:
                assert mine.speedup == pytest.approx(named.speedup, rel=0.1)


async def test_a_reference_whose_host_reads_has_the_time_of_its_kernels(gpu_pool: Pool) -> None:
    found = []
    for length in ("int(lengths[row].item())", "500"):
        one = await judge(gpu_pool, LENGTHS.replace("LENGTH", length), RAGGED)
        assert one.status is Status.CORRECT, one.detail
        found.append(one)
    reads, told = (one.reference_us or 0.0 for one in found)
    # The selection of an element that is read is a view; its copy to the host is not timed.
    assert reads == pytest.approx(told, rel=0.15)
    assert found[0].speedup == pytest.approx(found[1].speedup, rel=0.2)
