# own/linear_relu correct coverage<0.5: the weight under no name of the reference's, transposed at once: it is square, so that its transpose could be taken for a weight
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
        self.register_buffer("packed", linear.weight.detach().t().contiguous())

    def forward(self, x):
        y = torch.addmm(self.bias, x, self.packed)
        relu_kernel[(triton.cdiv(y.numel(), 1024),)](y, y.numel(), BLOCK=1024)
        return y
