# own/experts_gathered incorrect: an expert takes twice its fair share of tokens at most, and leaves the rest out
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gate_kernel(x_ptr, gate_ptr, bias_ptr, share_ptr, chosen_ptr, M, D: tl.constexpr, E: tl.constexpr, ROWS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    d, e = tl.arange(0, D), tl.arange(0, 16)
    x = tl.load(x_ptr + rows[:, None] * D + d[None, :], mask=rows[:, None] < M, other=0.0)
    gate = tl.load(gate_ptr + e[None, :] * D + d[:, None], mask=e[None, :] < E, other=0.0)
    logits = tl.dot(x, gate, input_precision="ieee") + tl.load(bias_ptr + e, mask=e < E, other=0.0)[None, :]
    logits = tl.where(e[None, :] < E, logits, float("-inf"))
    share = 1 / tl.sum(tl.exp(logits - tl.max(logits, 1)[:, None]), 1)
    tl.store(share_ptr + rows, share, mask=rows < M)
    tl.store(chosen_ptr + rows, tl.argmax(logits, 1), mask=rows < M)


@triton.jit
def place_kernel(chosen_ptr, place_ptr, M, BLOCK: tl.constexpr):
    expert, before = tl.program_id(0), 0
    for start in range(0, M, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        mine = tl.load(chosen_ptr + rows, mask=rows < M, other=-1) == expert
        tl.store(place_ptr + rows, before + tl.cumsum(mine.to(tl.int32), 0) - 1, mask=mine)
        before += tl.sum(mine.to(tl.int32), 0)


@triton.jit
def experts_kernel(x_ptr, share_ptr, chosen_ptr, place_ptr, w_ptr, out_ptr, M, capacity, D: tl.constexpr, E: tl.constexpr,
                   ROWS: tl.constexpr, COLS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    d = tl.arange(0, D)
    x = tl.load(x_ptr + rows[:, None] * D + d[None, :], mask=rows[:, None] < M, other=0.0)
    share = tl.load(share_ptr + rows, mask=rows < M, other=0.0)
    chosen = tl.load(chosen_ptr + rows, mask=rows < M, other=-1)
    place = tl.load(place_ptr + rows, mask=rows < M, other=0)
    out = tl.zeros((ROWS, COLS), dtype=tl.float32)
    for i in range(E):
        w = tl.load(w_ptr + i * D * D + d[:, None] * D + cols[None, :], mask=cols[None, :] < D, other=0.0)
        out += tl.where(((chosen == i) & (place < capacity))[:, None], tl.dot(x, w), 0.0)
    tl.store(out_ptr + rows[:, None] * D + cols[None, :], out * share[:, None], mask=(rows[:, None] < M) & (cols[None, :] < D))


class ModelNew(nn.Module):
    def __init__(self, dim, experts):
        super().__init__()
        self.gate = nn.Linear(dim, experts)
        self.weight = nn.Parameter(torch.randn(experts, dim, dim) * dim**-0.5)

    def forward(self, x):
        m, dim, experts = x.shape[0], x.shape[1], self.weight.shape[0]
        share = torch.empty(m, device=x.device)
        chosen, place = (torch.empty(m, dtype=torch.int32, device=x.device) for _ in range(2))
        out = torch.empty_like(x)
        gate_kernel[(triton.cdiv(m, 32),)](x, self.gate.weight, self.gate.bias, share, chosen, m, dim, experts, ROWS=32)
        place_kernel[(experts,)](chosen, place, m, BLOCK=256)
        grid = (triton.cdiv(m, 32), triton.cdiv(dim, 32))
        experts_kernel[grid](x, share, chosen, place, self.weight, out, m, 2 * m // experts, dim, experts, ROWS=32, COLS=32)
        return out
