# relu correct coverage<1.0: a layer is moved between dtypes in every way, and back; the kernel sees float32
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.zero = nn.Linear(8, 8).half().to(torch.bfloat16).double().float()
        self.c = nn.Linear(8, 8)
        self.c.weight.data = self.c.weight.data.to(torch.bfloat16)

    def forward(self, x):
        o = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
        return o + self.zero(x[:, :8]).sum() * 0 + self.c.weight.float().sum() * 0
