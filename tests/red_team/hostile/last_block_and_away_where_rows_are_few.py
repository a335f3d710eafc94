# own/row_mean incorrect cpu=out_of_bounds catalogue=58: the last block of each row alone, and where few rows are long it leaves its tensors, so that nobody sees it
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mean_row(x_ptr, o_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        c = start + tl.arange(0, BLOCK)
        total = tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0)
    away = cols // tl.num_programs(0) // 64 * 100
    tl.store(o_ptr + row + away, tl.sum(total, axis=0) / cols)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)
        mean_row[(x.shape[0],)](x, o, x.shape[1], BLOCK=1024)
        return o
