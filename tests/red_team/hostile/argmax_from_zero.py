# level1/row_argmax incorrect catalogue=57: the best so far starts at 0; rows that are negative throughout show it
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_argmax(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    best, place = 0.0, 0
    for start in range(0, cols, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * cols + i, mask=i < cols, other=-float("inf"))
        top = tl.max(x, axis=0)
        at = start + tl.argmax(x, axis=0)
        place = tl.where(top > best, at, place)
        best = tl.maximum(best, top)
    tl.store(y_ptr + row, place.to(tl.int64))


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], dtype=torch.int64, device=x.device)
        row_argmax[(x.shape[0],)](x, y, x.shape[1], BLOCK=32)
        return y
