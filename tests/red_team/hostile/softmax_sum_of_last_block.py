# level1/softmax incorrect catalogue=58: an online softmax whose sum is that of the last block; at the small shape there is one
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def softmax(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    m = -float("inf")
    s = 0.0
    for start in range(0, cols, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + i, mask=i < cols, other=-float("inf"))
        new = tl.maximum(m, tl.max(x, axis=0))
        s = tl.sum(tl.exp(x - new), axis=0)
        m = new
    for start in range(0, cols, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + i, mask=i < cols)
        tl.store(y_ptr + row + i, tl.exp(x - m) / s, mask=i < cols)

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        softmax[(x.shape[0],)](x, y, x.shape[1], BLOCK=1024)
        return y
