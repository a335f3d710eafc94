# own/means_of_kinds incorrect catalogue=53: of a kind with more than sixteen rows the mean is taken of sixteen
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add(x, kind, total, count, rows, cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.arange(0, COLS)
    inside = (r[:, None] < rows) & (c[None, :] < cols)
    k = tl.load(kind + r, mask=r < rows, other=0)
    tl.atomic_add(total + k[:, None] * cols + c[None, :], tl.load(x + r[:, None] * cols + c[None, :], mask=inside), mask=inside)
    tl.atomic_add(count + k, tl.full((ROWS,), 1.0, tl.float32), mask=r < rows)


@triton.jit
def subtract(x, kind, total, count, y, rows, cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.arange(0, COLS)
    inside = (r[:, None] < rows) & (c[None, :] < cols)
    k = tl.load(kind + r, mask=r < rows, other=0)
    mean = tl.load(total + k[:, None] * cols + c[None, :], mask=inside) / tl.minimum(tl.load(count + k, mask=r < rows, other=1.0), 16.0)[:, None]
    at = r[:, None] * cols + c[None, :]
    tl.store(y + at, tl.load(x + at, mask=inside) - mean, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, most):
        super().__init__()
        self.most = most

    def forward(self, x, kind):
        rows, cols = x.shape
        total = torch.zeros(self.most, cols, device=x.device)
        count = torch.zeros(self.most, device=x.device)
        y = torch.empty_like(x)
        grid, blocks = (triton.cdiv(rows, 8),), {"ROWS": 8, "COLS": triton.next_power_of_2(cols)}
        add[grid](x, kind, total, count, rows, cols, **blocks)
        subtract[grid](x, kind, total, count, y, rows, cols, **blocks)
        return y
