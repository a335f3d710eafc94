# level3/gated_norm correct: the gate, the norm and the weight in one pass over the row
import torch
import torch.nn as nn
import triton
import triton.language as tl

COLS = 4096


@triton.jit
def gated_norm(x_ptr, g_ptr, w_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    m = i < cols
    g = tl.load(g_ptr + row * cols + i, mask=m, other=0.0)
    x = tl.load(x_ptr + row * cols + i, mask=m, other=0.0) * (g * tl.sigmoid(g))
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / cols + 1e-6)
    tl.store(y_ptr + row * cols + i, x * scale * tl.load(w_ptr + i, mask=m), mask=m)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(COLS))

    def forward(self, x, gate):
        y = torch.empty_like(x)
        gated_norm[(x.shape[0],)](x, gate, self.weight, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=8)
        return y
