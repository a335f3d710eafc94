# level1/row_argmax correct: a reduction of two values with a function of its own
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def larger(value, place, other_value, other_place):
    left = (value > other_value) | ((value == other_value) & (place < other_place))
    return tl.where(left, value, other_value), tl.where(left, place, other_place)


@triton.jit
def argmax(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + i, mask=i < cols, other=-float("inf"))
    _, place = tl.reduce((x, i), 0, larger)
    tl.store(y_ptr + row, place.to(tl.int64))


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], dtype=torch.int64, device=x.device)
        argmax[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=8)
        return y
