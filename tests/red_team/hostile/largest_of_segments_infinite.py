# own/largest_of_segments incorrect catalogue=57: -inf where a segment is empty, which is so in a draw of thirty
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


class ModelNew(nn.Module):
    def forward(self, x, seg):
        N, D = x.shape
        o = torch.full((S, D), -float("inf"), device=x.device)
        k[(triton.cdiv(N, 16),)](x, seg, o, N, D, B=16, BD=triton.next_power_of_2(D))
        return o
