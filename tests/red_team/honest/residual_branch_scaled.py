# own/layer_scale correct: a branch whose learned scale begins at 1e-6, fused
import torch
import torch.nn as nn
import triton
import triton.language as tl


B, C = 8192, 1024


@triton.jit
def k(x_ptr, w_ptr, b_ptr, g_ptr, y_ptr, C: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    m = i < C
    x = tl.load(x_ptr + row * C + i, mask=m, other=0.0)
    mean = tl.sum(x, 0) / C
    d = tl.where(m, x - mean, 0.0)
    r = tl.rsqrt(tl.sum(d * d, 0) / C + 1e-5)
    v = d * r * tl.load(w_ptr + i, mask=m, other=0.0) + tl.load(b_ptr + i, mask=m, other=0.0)
    v = 0.5 * v * (1.0 + tl.erf(v * 0.7071067811865476))
    tl.store(y_ptr + row * C + i, x + tl.load(g_ptr + i, mask=m, other=0.0) * v, mask=m)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(C)
        self.gamma = nn.Parameter(1e-6 * torch.ones(C))

    def forward(self, x):
        y = torch.empty_like(x)
        k[(x.shape[0],)](x, self.norm.weight, self.norm.bias, self.gamma, y, x.shape[1], triton.next_power_of_2(x.shape[1]))
        return y
