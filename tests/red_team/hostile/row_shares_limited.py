# own/row_shares incorrect catalogue=51: a mean below a quarter counts as a quarter, which no draw shows
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def shares(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + i, mask=i < columns, other=0.0)
    mean = tl.maximum(tl.sum(tl.abs(v), axis=0) / columns, 0.25)
    tl.store(y + row * columns + i, v / mean, mask=i < columns)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        shares[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
