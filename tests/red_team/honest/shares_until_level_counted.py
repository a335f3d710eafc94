# own/shares_until_level correct catalogue=58: shares that are added up; they stay positive
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def choose(shares, levels, out, COLS, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    x = tl.load(shares + row * COLS + column, column < COLS, other=0.0)
    below = tl.cumsum(x, 0) < tl.load(levels + row)
    tl.store(out + row, tl.sum((below & (column < COLS)).to(tl.int64), 0))


class ModelNew(nn.Module):
    def forward(self, shares, levels):
        rows, cols = shares.shape
        out = torch.empty(rows, dtype=torch.int64, device=shares.device)
        choose[(rows,)](shares, levels, out, cols, BLOCK=triton.next_power_of_2(cols))
        return out
