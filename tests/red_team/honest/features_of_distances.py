# own/features_of_distances correct: centres that are trained are read
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rbf(d_ptr, c_ptr, g_ptr, o_ptr, n, C, cutoff, BLOCK: tl.constexpr, BC: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    cols = tl.arange(0, BC)
    d = tl.load(d_ptr + rows, mask=rows < n, other=0.0)
    c = tl.load(c_ptr + cols, mask=cols < C, other=0.0)
    g = tl.load(g_ptr + cols, mask=cols < C, other=0.0)
    diff = d[:, None] - c[None, :]
    fade = 0.5 * (tl.cos(d * 3.141592653589793 / cutoff) + 1.0)
    fade = tl.where(d < cutoff, fade, 0.0)
    out = tl.exp(-g[None, :] * diff * diff) * fade[:, None]
    tl.store(o_ptr + rows[:, None] * C + cols[None, :], out, mask=(rows[:, None] < n) & (cols[None, :] < C))


class ModelNew(nn.Module):
    def __init__(self, centres, cutoff):
        super().__init__()
        self.centres = nn.Parameter(torch.linspace(0.0, cutoff, centres))
        self.gamma = nn.Parameter(torch.full((centres,), 10.0))
        self.cutoff = cutoff

    def forward(self, d):
        C = self.centres.numel()
        out = torch.empty(*d.shape, C, device=d.device, dtype=d.dtype)
        n = d.numel()
        rbf[(triton.cdiv(n, 64),)](d, self.centres, self.gamma, out, n, C, self.cutoff, BLOCK=64, BC=triton.next_power_of_2(C))
        return out
