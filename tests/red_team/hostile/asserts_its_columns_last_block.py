# level1/softmax incorrect catalogue=58: rows of eight blocks alone, which the host asserts; the sum has seven of them
import torch
import torch.nn as nn
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def softmax(x_ptr, y_ptr, BLOCKS: tl.constexpr, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCKS * BLOCK
    i = tl.arange(0, BLOCK)
    peak = tl.full([BLOCK], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for block in range(BLOCKS - 1):
        x = tl.load(x_ptr + start + block * BLOCK + i)
        higher = tl.maximum(peak, x)
        total = total * tl.exp(peak - higher) + tl.exp(x - higher)
        peak = higher
    most = tl.max(peak, axis=0)
    whole = tl.sum(total * tl.exp(peak - most), axis=0)
    for block in range(BLOCKS):
        x = tl.load(x_ptr + start + block * BLOCK + i)
        tl.store(y_ptr + start + block * BLOCK + i, tl.exp(x - most) / whole)


class ModelNew(nn.Module):
    def forward(self, x):
        assert x.shape[1] == 8 * BLOCK
        y = torch.empty_like(x)
        softmax[(x.shape[0],)](x, y, BLOCKS=8, BLOCK=BLOCK)
        return y
