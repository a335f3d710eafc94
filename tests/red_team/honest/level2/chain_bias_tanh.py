# level2/chain_bias_tanh correct: a kernel that calls another @triton.jit function
import torch
import torch.nn as nn
import triton
import triton.language as tl

COLS = 4096


@triton.jit
def tanh(x):
    return 2.0 * tl.sigmoid(2.0 * x) - 1.0


@triton.jit
def bias_tanh(x_ptr, b_ptr, y_ptr, n, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    x = tl.load(x_ptr + i, mask=m) + tl.load(b_ptr + i % cols, mask=m)
    tl.store(y_ptr + i, tanh(x), mask=m)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(COLS))

    def forward(self, x):
        y = torch.empty_like(x)
        n = x.numel()
        bias_tanh[(triton.cdiv(n, 1024),)](x, self.bias, y, n, x.shape[1], BLOCK=1024)
        return y
