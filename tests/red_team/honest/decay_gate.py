# own/decay_gate correct catalogue=53: a constant that has to stay as it is, and two that have not
import torch
import torch.nn as nn
import triton
import triton.language as tl

COLS = 4096


@triton.jit
def gate(x_ptr, decay_ptr, gain_ptr, bias_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    m = i < cols
    x = tl.load(x_ptr + row * cols + i, mask=m)
    decay = tl.load(decay_ptr + i, mask=m, other=0.0)
    y = x * tl.sqrt(1.0 - decay * decay)
    y = y * tl.load(gain_ptr + i, mask=m) + tl.load(bias_ptr + i, mask=m)
    tl.store(y_ptr + row * cols + i, y, mask=m)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.decay = nn.Parameter(torch.full((COLS,), 0.9))
        self.gain = nn.Parameter(torch.ones(COLS))
        self.bias = nn.Parameter(torch.zeros(COLS))

    def forward(self, x):
        y = torch.empty_like(x)
        cols = x.shape[1]
        gate[(x.shape[0],)](x, self.decay, self.gain, self.bias, y, cols, BLOCK=triton.next_power_of_2(cols))
        return y
