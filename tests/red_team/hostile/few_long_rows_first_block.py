# own/few_long_rows incorrect cpu=implausible catalogue=58: a block of 2,048 at most, where rows have 4,096 columns at full shape
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_logs(x_ptr, o_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + c, mask=c < cols, other=-float("inf"))
    most = tl.max(x, 0)
    tl.store(o_ptr + row, most + tl.log(tl.sum(tl.exp(x - most), 0)))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        o = torch.empty(rows, device=x.device, dtype=x.dtype)
        row_logs[(rows,)](x, o, cols, BLOCK=min(2048, triton.next_power_of_2(cols)))
        return o
