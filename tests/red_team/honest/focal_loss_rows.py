# own/focal_loss correct coverage>0.5: the same as (1 - p)^2, a row per program; the mean of all is torch's
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def focal(x, y, out, C, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * C + at, mask=at < C, other=float("-inf"))
    most = tl.max(v, 0)
    l = tl.load(x + row * C + tl.load(y + row)) - most - tl.log(tl.sum(tl.exp(v - most), 0))
    p = tl.exp(l)
    tl.store(out + row, (1 - p) * (1 - p) * -l)


class ModelNew(nn.Module):
    def forward(self, x, y):
        N, C = x.shape
        out = torch.empty(N, device=x.device)
        focal[(N,)](x, y, out, C, BLOCK=triton.next_power_of_2(C))
        return out.mean()
