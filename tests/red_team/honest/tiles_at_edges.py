# own/sheets correct: tiles at the right edge and at the lower edge store different parts of their block
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def shifted_relu(x_ptr, y_ptr, rows, cols, BM: tl.constexpr, BN: tl.constexpr):
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    c = tl.program_id(1) * BN + tl.arange(0, BN)
    keep = (r[:, None] < rows) & (c[None, :] < cols)
    at = tl.program_id(2) * rows * cols + r[:, None] * cols + c[None, :]
    tl.store(y_ptr + at, tl.maximum(tl.load(x_ptr + at, mask=keep), 0.0) + 1.0, mask=keep)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        sheets, rows, cols = x.shape
        shifted_relu[(triton.cdiv(rows, 64), triton.cdiv(cols, 64), sheets)](x, y, rows, cols, BM=64, BN=64)
        return y
