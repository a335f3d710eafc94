# level1/matvec correct catalogue=59: columns are split over programs, which add their parts with atomics
import torch
import torch.nn as nn
import triton
import triton.language as tl

COLS = 8192


@triton.jit
def rows(x_ptr, w_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row.to(tl.int64) * cols + i, mask=i < cols, other=0.0)
    tl.atomic_add(y_ptr + row, tl.sum(x * tl.load(w_ptr + i, mask=i < cols, other=0.0), axis=0))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(COLS))

    def forward(self, x):
        y = torch.zeros(x.shape[0], device=x.device)
        rows[(x.shape[0], triton.cdiv(x.shape[1], 2048))](x, self.weight, y, x.shape[1], BLOCK=2048)
        return y
