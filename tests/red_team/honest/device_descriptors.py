# level2/chain_bias_relu correct: tensor descriptors made in the kernel
import torch
import torch.nn as nn
import triton
import triton.language as tl

ROWS = 2048
COLS = 8192

@triton.jit
def kernel(x_ptr, b_ptr, o_ptr, flag_ptr, n, COLS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.make_tensor_descriptor(x_ptr, shape=[n], strides=[1], block_shape=[BLOCK])
    o = tl.make_tensor_descriptor(o_ptr, shape=[n], strides=[1], block_shape=[BLOCK])
    start = tl.program_id(0) * BLOCK
    y = x.load([start]) + tl.load(b_ptr + i % COLS)
    o.store([start], tl.maximum(y, 0.0))

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(COLS))
    def forward(self, x):
        o = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, self.bias, o, self.bias, x.numel(), x.shape[1], BLOCK=1024)
        return o
