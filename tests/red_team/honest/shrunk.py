# own/shrunk correct: half precision in, and float32 from the first operation on
import torch
import torch.nn as nn
import triton
import triton.language as tl

N, M = 8192, 1024


@triton.jit
def kernel(x, threshold, y, n, m, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0).to(tl.float32)
    t = tl.load(threshold + i % m, mask=i < n, other=0.0)
    v = tl.where(v > 0, 1.0, -1.0) * tl.maximum(tl.abs(v) - t, 0.0)
    tl.store(y + i, v, mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.threshold = nn.Parameter(torch.full((M,), 0.01))

    def forward(self, x):
        y = torch.empty(x.shape, device=x.device)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, self.threshold, y, x.numel(), x.shape[1], BLOCK=1024)
        return y
