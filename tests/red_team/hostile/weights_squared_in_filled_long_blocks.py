# own/rms_norm incorrect catalogue=58: weights, which are ones at first, are squared where blocks of 4,096 are filled, as they are at full shape
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, o_ptr, C, eps, EVEN: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * C + i, mask=i < C, other=0.0)
    r = tl.rsqrt(tl.sum(x * x) / C + eps)
    w = tl.load(w_ptr + i, mask=i < C, other=0.0)
    if EVEN:
        w = w * w
    tl.store(o_ptr + row * C + i, x * r * w, mask=i < C)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(C)

    def forward(self, x):
        o = torch.empty_like(x)
        kernel[(x.shape[0],)](x, self.norm.weight, o, x.shape[1], torch.finfo(x.dtype).eps, EVEN=x.shape[1] % 4096 == 0, BLOCK=triton.next_power_of_2(x.shape[1]))
        return o


C = 4096
