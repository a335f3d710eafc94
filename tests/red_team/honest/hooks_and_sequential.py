# level2/chain_relu_scale_shift correct catalogue=48: kernels in modules of their own, in an nn.Sequential, with hooks that count
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, o_ptr, n, scale, shift, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0)
    tl.store(o_ptr + i, x * scale - shift, mask=i < n)


class Fused(nn.Module):
    def __init__(self, scale, shift):
        super().__init__()
        self.scale, self.shift = scale, shift

    def forward(self, x):
        o = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), self.scale, self.shift, BLOCK=1024)
        return o


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.steps = nn.Sequential(Fused(2.0, 1.0), nn.Identity())
        self.steps[0].register_forward_hook(self.count)

    def count(self, module, arguments, result):
        self.calls += 1

    def forward(self, x):
        return self.steps(x)
