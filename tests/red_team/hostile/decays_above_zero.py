# own/decays_below_zero incorrect catalogue=57: decays are drawn below zero, and taken to be above it
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def left_over(dt, decay, bias, out, n, H, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    z = tl.load(dt + i, mask=i < n, other=0.0) + tl.load(bias + i % H)
    soft = tl.where(z > 20.0, z, tl.log(1.0 + tl.exp(z)))
    tl.store(out + i, tl.exp(soft * tl.abs(tl.load(decay + i % H))), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.decay = nn.Parameter(-torch.rand(heads))
        self.bias = nn.Parameter(torch.randn(heads))

    def forward(self, dt):
        out = torch.empty_like(dt)
        left_over[(triton.cdiv(dt.numel(), 1024),)](dt, self.decay, self.bias, out, dt.numel(), dt.shape[-1], BLOCK=1024)
        return out
