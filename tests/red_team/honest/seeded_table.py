# own/seeded_table correct: draws the reference's tables in __init__ as the reference does, under the same seeds
import numpy as np
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x, scale, shift, order, y, D, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    m = c < D
    v = tl.load(x + row * D + tl.load(order + c, mask=m, other=0), mask=m)
    tl.store(y + row * D + c, v * tl.load(scale + c, mask=m) + tl.load(shift + c, mask=m), mask=m)


class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        torch.manual_seed(42)
        self.scale = torch.randn(dim)
        generator = torch.Generator().manual_seed(7)
        self.shift = torch.rand(dim, generator=generator)
        self.order = torch.from_numpy(np.random.RandomState(3).permutation(dim))

    def forward(self, x):
        y = torch.empty_like(x)
        scale, shift, order = (t.to(x.device) for t in (self.scale, self.shift, self.order))
        kernel[(x.shape[0],)](x, scale, shift, order, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
