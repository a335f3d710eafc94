# own/directions_between correct: several rows in a program, and the distance limited before it is divided by
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def directions(x, y, out, rows, dim, ROWS: tl.constexpr, DIM: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.arange(0, DIM)
    inside = (r[:, None] < rows) & (c[None, :] < dim)
    at = r[:, None] * dim + c[None, :]
    way = tl.load(x + at, mask=inside, other=0.0) - tl.load(y + at, mask=inside, other=0.0)
    far = tl.maximum(tl.sqrt(tl.sum(way * way, 1)), 1e-6)
    tl.store(out + at, way / far[:, None], mask=inside)

class ModelNew(nn.Module):
    def forward(self, x, y):
        rows, dim = x.shape
        out = torch.empty_like(x)
        directions[(triton.cdiv(rows, 16),)](x, y, out, rows, dim, ROWS=16, DIM=triton.next_power_of_2(dim))
        return out
