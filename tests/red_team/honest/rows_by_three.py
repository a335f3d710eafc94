# level2/chain_leaky_square_scale correct: a grid of three dimensions with leftovers in each
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, o_ptr, rows, cols, row_stride, column_stride, BLOCK: tl.constexpr):
    row = tl.program_id(2).to(tl.int64) * tl.num_programs(1) + tl.program_id(1)
    if row < rows:
        c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * row_stride + c * column_stride, mask=c < cols)
        x = tl.where(x > 0, x, 0.3 * x)
        tl.store(o_ptr + row * row_stride + c * column_stride, x * x * 0.25, mask=c < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        o = torch.empty_like(x)
        grid = lambda meta: (triton.cdiv(cols, meta["BLOCK"]), 7, triton.cdiv(rows, 7))
        kernel[grid](x, o, rows, cols, x.stride(0), 1, BLOCK=1024)
        return o
