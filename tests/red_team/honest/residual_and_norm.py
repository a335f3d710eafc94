# level2/residual_rms_norm correct catalogue=57: the residual sum in a scratch buffer of the module, the norm by a second launch
import torch
import torch.nn as nn
import triton
import triton.language as tl

ROWS = 8192
COLS = 4096


@triton.jit
def add(x_ptr, y_ptr, s_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(s_ptr + i, tl.load(x_ptr + i, mask=i < n) + tl.load(y_ptr + i, mask=i < n), mask=i < n)


@triton.jit
def norm(s_ptr, w_ptr, o_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    s = tl.load(s_ptr + row * cols + i, mask=i < cols, other=0.0)
    scale = 1.0 / tl.sqrt(tl.sum(s * s, axis=0) / cols + 1e-6)
    tl.store(o_ptr + row * cols + i, s * scale * tl.load(w_ptr + i, mask=i < cols), mask=i < cols)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(COLS))
        self.scratch = torch.empty(ROWS, COLS, device="cuda")

    def forward(self, x, y):
        add[(triton.cdiv(x.numel(), 1024),)](x, y, self.scratch, x.numel(), BLOCK=1024)
        o = torch.empty_like(x)
        norm[(x.shape[0],)](self.scratch, self.weight, o, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=8)
        return o
