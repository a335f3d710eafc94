# level2/matmul_bias_relu correct coverage<0.9: library product, fused epilogue, nn.Linear-free parameters
import torch
import torch.nn as nn
import triton
import triton.language as tl

M = 2048
N = 2048
K = 1024

@triton.jit
def epilogue(x_ptr, b_ptr, n, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = i < n
    x = tl.load(x_ptr + i, mask=keep) + tl.load(b_ptr + i % cols, mask=keep)
    tl.store(x_ptr + i, tl.where(x > 0, x, 0.0), mask=keep)

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(K, N))
        self.bias = nn.Parameter(torch.randn(N))

    def forward(self, x):
        y = torch.mm(x, self.weight)
        epilogue[(triton.cdiv(y.numel(), 1024),)](y, self.bias, y.numel(), y.shape[1], BLOCK=1024)
        return y
