# own/priced_counts incorrect catalogue=57: sums in int32, which overflow in rows as long as the full ones alone
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(a, b, o, C, B: tl.constexpr):
    r = tl.program_id(0)
    acc = tl.zeros((B,), tl.int32)
    for s in range(0, C, B):
        i = s + tl.arange(0, B)
        acc += tl.load(a + r * C + i, mask=i < C, other=0) * tl.load(b + r * C + i, mask=i < C, other=0)
    tl.store(o + r, tl.sum(acc, 0).to(tl.int64))


class ModelNew(nn.Module):
    def forward(self, a, b):
        R, C = a.shape
        o = torch.empty(R, dtype=torch.int64, device=a.device)
        k[(R,)](a, b, o, C, B=1024)
        return o
