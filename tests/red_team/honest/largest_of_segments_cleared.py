# own/largest_of_segments correct coverage>0.5: -inf becomes zero in a second kernel
import torch
import torch.nn as nn
import triton
import triton.language as tl


S = 1024


@triton.jit
def k(x, s, o, n, D, B: tl.constexpr, BD: tl.constexpr):
    r = tl.program_id(0) * B + tl.arange(0, B)
    c = tl.arange(0, BD)
    m = (r[:, None] < n) & (c[None, :] < D)
    v = tl.load(x + r[:, None] * D + c[None, :], mask=m, other=0.0)
    t = tl.load(s + r, mask=r < n, other=0)
    tl.atomic_max(o + t[:, None] * D + c[None, :], v, mask=m)


@triton.jit
def z(o, cleared, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(o + i, mask=i < n)
    tl.store(cleared + i, tl.where(v == -float("inf"), 0.0, v), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x, seg):
        N, D = x.shape
        o = torch.full((S, D), -float("inf"), device=x.device)
        k[(triton.cdiv(N, 16),)](x, seg, o, N, D, B=16, BD=triton.next_power_of_2(D))
        cleared = torch.empty_like(o)
        z[(triton.cdiv(S * D, 1024),)](o, cleared, S * D, B=1024)
        return cleared
