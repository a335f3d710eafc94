# relu correct: a convolution of one by one channel beside its kernel, and a fallback that is not taken
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
        self.conv = nn.Conv2d(1, 1, 1).to(memory_format=torch.channels_last)
        self.norm = nn.LayerNorm(4)
        self.drop = nn.Identity()
        self.register_parameter("none", None)

    def forward(self, x):
        o = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
        return self.norm(o) if self.training and False else self.drop(o)
