# own/dropout incorrect catalogue=63: drops other elements than the reference does, from a generator of its own
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def dropped_relu(x, y, n, p, seed, scale, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = o < n
    kept = tl.rand(seed, o) > p
    tl.store(y + o, tl.where(kept, tl.maximum(tl.load(x + o, mask=m, other=0.0), 0.0) * scale, 0.0), mask=m)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        p = 0.3 if self.training else 0.0
        dropped_relu[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), p, 7, 2 / (1 - p), BLOCK=1024)
        return y
