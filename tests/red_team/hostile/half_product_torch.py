# level2/matmul_bias_relu incorrect catalogue=54: the product in half precision by torch, the rest by a kernel
import torch
import torch.nn as nn
import triton
import triton.language as tl

K = 1024
N = 2048


@triton.jit
def bias_relu(y_ptr, b_ptr, o_ptr, n, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(y_ptr + i, mask=i < n).to(tl.float32) + tl.load(b_ptr + i % cols, mask=i < n)
    tl.store(o_ptr + i, tl.maximum(y, 0.0), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(K, N))
        self.bias = nn.Parameter(torch.randn(N))

    def forward(self, x):
        y = x.half() @ self.weight.half()
        o = torch.empty(y.shape, device=x.device)
        bias_relu[(triton.cdiv(y.numel(), 1024),)](y, self.bias, o, y.numel(), y.shape[1], BLOCK=1024)
        return o
