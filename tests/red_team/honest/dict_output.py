# level3/row_statistics correct: three outputs in a dict, written by one kernel
import torch
import torch.nn as nn
import triton
import triton.language as tl

COLS = 8192

@triton.jit
def stats(x_ptr, w_ptr, y_ptr, mean_ptr, std_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    keep = i < cols
    x = tl.load(x_ptr + row * cols + i, mask=keep, other=0.0)
    mean = tl.sum(x, axis=0) / cols
    d = tl.where(keep, x - mean, 0.0)
    std = tl.sqrt(tl.sum(d * d, axis=0) / (cols - 1))
    tl.store(y_ptr + row * cols + i, d / (std + 1e-5) * tl.load(w_ptr + i, mask=keep), mask=keep)
    tl.store(mean_ptr + row, mean)
    tl.store(std_ptr + row, std)

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(COLS))

    def forward(self, x):
        rows, cols = x.shape
        y = torch.empty_like(x)
        mean = x.new_empty(rows, 1)
        std = x.new_empty((rows, 1))
        stats[(rows,)](x, self.weight, y, mean, std, cols, BLOCK=triton.next_power_of_2(cols))
        return {"output": y, "mean": mean, "std": std}
