# level3/gated_mlp correct coverage<0.9: matrix products by torch, the gate between them by Triton
import torch
import torch.nn as nn
import triton
import triton.language as tl

DIM = 1024
HIDDEN = 2048


@triton.jit
def silu_mul(g_ptr, u_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    g = tl.load(g_ptr + i, mask=m)
    tl.store(y_ptr + i, g * tl.sigmoid(g) * tl.load(u_ptr + i, mask=m), mask=m)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(DIM, HIDDEN, bias=False)
        self.up = nn.Linear(DIM, HIDDEN, bias=False)
        self.down = nn.Linear(HIDDEN, DIM, bias=False)

    def forward(self, x):
        g, u = self.gate(x), self.up(x)
        y = torch.empty_like(g)
        silu_mul[(triton.cdiv(g.numel(), 1024),)](g, u, y, g.numel(), BLOCK=1024)
        return self.down(y)
