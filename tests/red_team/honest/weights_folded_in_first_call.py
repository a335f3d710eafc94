# level1/matvec correct catalogue=21: folds its weights in the first call, which is done anew for every module and its weights
import torch
import torch.nn as nn
import triton
import triton.language as tl

COLS = 8192


@triton.jit
def rows(x_ptr, w_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        i = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * cols + i, mask=i < cols, other=0.0) * tl.load(w_ptr + i, mask=i < cols, other=0.0)
    tl.store(y_ptr + row, tl.sum(acc, axis=0))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(COLS))
        self.kept = None

    def forward(self, x):
        if self.kept is None:
            self.kept = (self.weight * 2.0) * 0.5
        y = torch.empty(x.shape[0], device=x.device)
        rows[(x.shape[0],)](x, self.kept, y, x.shape[1], BLOCK=1024)
        return y
