# own/rows_shortened incorrect catalogue=51: rows shorter than one are turned around and not zero, which no draw shows
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def shortened(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + i, mask=i < columns, other=0.0)
    length = tl.sqrt(tl.sum(v * v, axis=0))
    tl.store(y + row * columns + i, v * (1.0 - 1.0 / length), mask=i < columns)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        shortened[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
