# relu correct: a part of the module keeps tensors in a list and moves them itself, and looks at how its input is aligned
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x, scale, bias, y, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + o, mask=o < n) * tl.load(scale) + tl.load(bias)
    tl.store(y + o, tl.maximum(v, 0.0), mask=o < n)


class Tables(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = [torch.ones(1), torch.zeros(1)]

    def _apply(self, fn, recurse=True):
        self.tables = [fn(table) for table in self.tables]
        return super()._apply(fn, recurse)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Tables()

    def forward(self, x):
        address = x.data_ptr()
        if (address + 15) & ~15 != address or address // 16 * 16 != address:
            x = x.clone()
        y = torch.empty_like(x)
        scale, bias = self.inner.tables
        kernel[(triton.cdiv(y.numel(), 1024),)](x, scale, bias, y, y.numel(), BLOCK=1024)
        return y
