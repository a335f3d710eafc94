# own/linear_relu correct coverage<0.3: a weight under another name, scaled in the constructor, which is given to the module as it is
import torch
import torch.nn as nn
import triton
import triton.language as tl

WIDTH = 512


@triton.jit
def relu_kernel(x, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + o, tl.maximum(tl.load(x + o, mask=o < n), 0.0), mask=o < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        linear = nn.Linear(WIDTH, WIDTH)
        self.bias = nn.Parameter(linear.bias.detach().clone())
        self.weight = nn.Parameter(linear.weight.detach() * 2.0 / 2.0)

    def forward(self, x):
        y = torch.nn.functional.linear(x, self.weight, self.bias)
        relu_kernel[(triton.cdiv(y.numel(), 1024),)](y, y.numel(), BLOCK=1024)
        return y
