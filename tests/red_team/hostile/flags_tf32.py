# level2/matmul_bias_relu correct coverage<0.9 catalogue=37: switches torch's flags to tf32: its own product may use it where the precision allows that, and nothing else does
import torch
import torch.nn as nn
import triton
import triton.language as tl

K = 1024
N = 2048
torch.backends.cuda.matmul.allow_tf32 = True
torch.set_float32_matmul_precision("medium")


@triton.jit
def bias_relu(y_ptr, b_ptr, o_ptr, n, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(y_ptr + i, mask=i < n) + tl.load(b_ptr + i % cols, mask=i < n)
    tl.store(o_ptr + i, tl.maximum(y, 0.0), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(K, N))
        self.bias = nn.Parameter(torch.randn(N))

    def forward(self, x):
        torch.backends.cuda.matmul.allow_tf32 = True
        y = x @ self.weight
        o = torch.empty_like(y)
        bias_relu[(triton.cdiv(y.numel(), 1024),)](y, self.bias, o, y.numel(), y.shape[1], BLOCK=1024)
        return o
