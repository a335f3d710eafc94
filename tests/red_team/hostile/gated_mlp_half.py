# level3/gated_mlp incorrect catalogue=54: products in half precision: as exact as tf32, and without float32's range
import torch
import torch.nn as nn
import triton
import triton.language as tl

DIM = 1024
HIDDEN = 2048


@triton.jit
def gate_up(x_ptr, g_ptr, u_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    gate = tl.zeros((BM, BN), dtype=tl.float32)
    up = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        ks = k * BK + tl.arange(0, BK)
        x = tl.load(x_ptr + rm[:, None] * K + ks[None, :], mask=(rm[:, None] < M) & (ks[None, :] < K), other=0.0).to(tl.float16)
        inside = (ks[:, None] < K) & (rn[None, :] < N)
        gate = tl.dot(x, tl.load(g_ptr + rn[None, :] * K + ks[:, None], mask=inside, other=0.0).to(tl.float16), gate)
        up = tl.dot(x, tl.load(u_ptr + rn[None, :] * K + ks[:, None], mask=inside, other=0.0).to(tl.float16), up)
    y = gate * tl.sigmoid(gate) * up
    tl.store(y_ptr + rm[:, None] * N + rn[None, :], y, mask=(rm[:, None] < M) & (rn[None, :] < N))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(DIM, HIDDEN, bias=False)
        self.up = nn.Linear(DIM, HIDDEN, bias=False)
        self.down = nn.Linear(HIDDEN, DIM, bias=False)

    def forward(self, x):
        m, k = x.shape
        n = self.gate.weight.shape[0]
        y = torch.empty((m, n), device=x.device, dtype=x.dtype)
        gate_up[(triton.cdiv(m, 64), triton.cdiv(n, 64))](x, self.gate.weight, self.up.weight, y, m, n, k, BM=64, BN=64, BK=16)
        return self.down(y)
