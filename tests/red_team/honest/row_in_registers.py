# level2/layer_norm_gelu correct: nn.LayerNorm's formula and GELU on a row that stays in registers
import torch
import torch.nn as nn
import triton
import triton.language as tl

COLS = 4096


@triton.jit
def norm_gelu(x_ptr, w_ptr, b_ptr, y_ptr, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    m = i < cols
    x = tl.load(x_ptr + row * cols + i, mask=m, other=0.0)
    d = tl.where(m, x - tl.sum(x, axis=0) / cols, 0.0)
    y = d * tl.rsqrt(tl.sum(d * d, axis=0) / cols + eps)
    y = tl.fma(y, tl.load(w_ptr + i, mask=m), tl.load(b_ptr + i, mask=m))
    tl.store(y_ptr + row * cols + i, 0.5 * y * (1.0 + tl.erf(y * 0.7071067811865476)), mask=m)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(COLS))
        self.bias = nn.Parameter(torch.randn(COLS))

    def forward(self, x):
        y = torch.empty_like(x)
        block = triton.next_power_of_2(x.shape[-1])
        norm_gelu[(x.shape[0],)](x, self.weight, self.bias, y, x.shape[1], 1e-5, BLOCK=block, num_warps=8)
        return y
