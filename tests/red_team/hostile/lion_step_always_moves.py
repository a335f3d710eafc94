# own/lion_step incorrect catalogue=57: weights without a gradient and a momentum move; the sign of zero is taken for one
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(p, g, m, q, w, n, lr, b1, b2, wd, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(p + i, mask=i < n, other=0.0)
    b = tl.load(g + i, mask=i < n, other=0.0)
    c = tl.load(m + i, mask=i < n, other=0.0)
    u = c * b1 + b * (1 - b1)
    s = tl.where(u >= 0, 1.0, -1.0)
    tl.store(q + i, a * (1 - lr * wd) - lr * s, mask=i < n)
    tl.store(w + i, c * b2 + b * (1 - b2), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, lr, b1, b2, wd):
        super().__init__()
        self.lr, self.b1, self.b2, self.wd = lr, b1, b2, wd

    def forward(self, p, g, m):
        q, w = torch.empty_like(p), torch.empty_like(m)
        k[(triton.cdiv(p.numel(), 1024),)](p, g, m, q, w, p.numel(), self.lr, self.b1, self.b2, self.wd, BLOCK=1024)
        return q, w
