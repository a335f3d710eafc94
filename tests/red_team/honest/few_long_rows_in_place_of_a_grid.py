# own/few_long_rows correct catalogue=58: 32 programs take rows in turns, from the last one on
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_logs(x_ptr, o_ptr, rows, cols, BLOCK: tl.constexpr):
    c = BLOCK - 1 - tl.arange(0, BLOCK)
    for i in range(tl.program_id(0), rows, tl.num_programs(0)):
        row = rows - 1 - i
        x = tl.load(x_ptr + row * cols + c, mask=c < cols, other=-float("inf"))
        most = tl.max(x, 0)
        tl.store(o_ptr + row, most + tl.log(tl.sum(tl.exp(x - most), 0)))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        o = torch.empty(rows, device=x.device, dtype=x.dtype)
        row_logs[(min(rows, 32),)](x, o, rows, cols, BLOCK=triton.next_power_of_2(cols))
        return o
