# own/bits_packed correct: shifts and sums a tile of 32 columns
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def pack(x_ptr, o_ptr, words, BW: tl.constexpr):
    row, w, b = tl.program_id(0), tl.program_id(1) * BW + tl.arange(0, BW), tl.arange(0, 32)
    inside = w < words
    x = tl.load(x_ptr + (row * words + w[:, None]) * 32 + b[None, :], mask=inside[:, None], other=0.0)
    bits = (x > 0).to(tl.int64) << b[None, :].to(tl.int64)
    tl.store(o_ptr + row * words + w, tl.sum(bits, 1), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        o = torch.empty(rows, cols // 32, dtype=torch.int64, device=x.device)
        pack[(rows, triton.cdiv(cols // 32, 32))](x, o, cols // 32, BW=32)
        return o
