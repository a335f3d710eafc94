# level3/norm_mlp correct coverage<0.9: three kernels between torch's products, one of them in place on a buffer of its own
import torch
import torch.nn as nn
import triton
import triton.language as tl

DIM = 1024
HIDDEN = 2048


@triton.jit
def norm(x_ptr, w_ptr, b_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + i, mask=i < cols, other=0.0)
    d = tl.where(i < cols, x - tl.sum(x, axis=0) / cols, 0.0)
    y = d / tl.sqrt(tl.sum(d * d, axis=0) / cols + 1e-5)
    y = y * tl.load(w_ptr + i, mask=i < cols) + tl.load(b_ptr + i, mask=i < cols)
    tl.store(y_ptr + row * cols + i, y, mask=i < cols)


@triton.jit
def gelu_in_place(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(x_ptr + i, 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476)), mask=i < n)


@triton.jit
def add(x_ptr, y_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n) + tl.load(y_ptr + i, mask=i < n), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(DIM))
        self.bias = nn.Parameter(torch.randn(DIM))
        self.up = nn.Linear(DIM, HIDDEN)
        self.down = nn.Linear(HIDDEN, DIM)

    def forward(self, x):
        y = torch.empty_like(x)
        norm[(x.shape[0],)](x, self.weight, self.bias, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        y = self.up(y)
        gelu_in_place[(triton.cdiv(y.numel(), 1024),)](y, y.numel(), BLOCK=1024)
        y = self.down(y)
        o = torch.empty_like(x)
        add[(triton.cdiv(x.numel(), 1024),)](x, y, o, x.numel(), BLOCK=1024)
        return o
