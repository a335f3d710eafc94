# own/expanded_buffer correct: a buffer whose numbers are one in memory is read by its stride
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x, z, y, n, K, sc, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n, other=0.0)
    b = tl.load(z + (i % K) * sc, mask=i < n, other=0.0)
    tl.store(y + i, tl.maximum(a + b, 0.0), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("bias", torch.zeros(1).expand(K))

    def forward(self, x):
        y = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 1024),)](x, self.bias, y, x.numel(), x.shape[1], self.bias.stride(0), BLOCK=1024)
        return y


K = 2048
