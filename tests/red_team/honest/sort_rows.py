# level1/row_max correct catalogue=11: the largest of every column of a block, then Triton's own sort
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def row_max(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    best = tl.full((BLOCK,), -float("inf"), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        i = start + tl.arange(0, BLOCK)
        best = tl.maximum(best, tl.load(x_ptr + row * cols + i, mask=i < cols, other=-float("inf")))
    best = tl.sort(best)
    tl.store(y_ptr + row, tl.max(tl.where(tl.arange(0, BLOCK) == BLOCK - 1, best, -float("inf")), axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], device=x.device)
        row_max[(x.shape[0],)](x, y, x.shape[1], BLOCK=16, num_warps=1)
        return y
