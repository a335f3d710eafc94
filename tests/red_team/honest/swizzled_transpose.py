# level1/transpose correct: tiles in swizzled order, transposed in registers
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def transpose(x_ptr, y_ptr, rows, cols, B: tl.constexpr, GROUP: tl.constexpr):
    r, c = tl.swizzle2d(tl.program_id(0), tl.program_id(1), tl.num_programs(0), tl.num_programs(1), GROUP)
    i, j = r * B + tl.arange(0, B), c * B + tl.arange(0, B)
    x = tl.load(x_ptr + i[:, None] * cols + j[None, :], mask=(i[:, None] < rows) & (j[None, :] < cols))
    tl.store(y_ptr + j[:, None] * rows + i[None, :], tl.trans(x), mask=(j[:, None] < cols) & (i[None, :] < rows))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        y = x.new_empty((cols, rows))
        transpose[(triton.cdiv(rows, 32), triton.cdiv(cols, 32))](x, y, rows, cols, B=32, GROUP=4)
        return y
