# own/softmax_of_lengths correct: rows are read as far as their lengths, which are no longer than rows at any size
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def rows(x_ptr, len_ptr, o_ptr, heads, cols, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    length = tl.load(len_ptr + row // heads).to(tl.int32)
    m = tl.full([BLOCK], -1e30, tl.float32)
    s = tl.zeros([BLOCK], tl.float32)
    for first in range(0, length, BLOCK):
        at = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * cols + at, mask=at < length, other=-1e30) * scale
        new = tl.maximum(m, x)
        s = s * tl.exp(m - new) + tl.where(at < length, tl.exp(x - new), 0.0)
        m = new
    top = tl.max(m, 0)
    total = tl.sum(s * tl.exp(m - top), 0)
    for first in range(0, cols, BLOCK):
        at = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * cols + at, mask=at < length, other=float("-inf")) * scale
        tl.store(o_ptr + row * cols + at, tl.exp(x - top) / total, mask=at < cols)

class ModelNew(nn.Module):
    def forward(self, x, lengths):
        b, h, c = x.shape
        out = torch.empty_like(x)
        rows[(b * h,)](x, lengths, out, h, c, 0.125, BLOCK=256)
        return out
