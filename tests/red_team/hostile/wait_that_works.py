# own/row_sum_f32 correct cpu=untraceable catalogue=49: a loop that looks as if it waited, whose test adds up a row
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def begin(at, out, cols):
    row = tl.program_id(0)
    tl.store(at + row, row * cols)
    tl.store(out + row, 0.0)


@triton.jit
def add_up(x, at, out, cols):
    row = tl.program_id(0)
    end = (row + 1) * cols
    while (tl.atomic_add(out + row, tl.load(x + tl.atomic_add(at + row, 1))) > -1e38) & (tl.load(at + row) < end):
        pass


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        out = torch.empty(rows, device=x.device)
        at = torch.empty(rows, dtype=torch.int32, device=x.device)
        begin[(rows,)](at, out, cols)
        add_up[(rows,)](x, at, out, cols)
        return out
