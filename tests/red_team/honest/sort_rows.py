# level1/row_max correct catalogue=11: the largest of every column of a block, then Triton's own sort
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def row_max(x_ptr, y_ptr, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    j = tl.arange(0, BLOCK)
    best = tl.full((ROWS, BLOCK), -float("inf"), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        m = (r[:, None] < rows) & (start + j[None, :] < cols)
        best = tl.maximum(best, tl.load(x_ptr + r[:, None] * cols + start + j[None, :], mask=m, other=-float("inf")))
    best = tl.sort(best)
    tl.store(y_ptr + r, tl.max(tl.where(j[None, :] == BLOCK - 1, best, -float("inf")), axis=1), mask=r < rows)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        y = torch.empty(rows, device=x.device)
        row_max[(triton.cdiv(rows, 8),)](x, y, rows, cols, ROWS=8, BLOCK=64)
        return y
