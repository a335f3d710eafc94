# own/lstm_step correct coverage>0.02 speedup<1.1: a GPU has one kernel for the gates of a cell, too
import torch
import torch.nn as nn
import triton
import triton.language as tl

INPUT, HIDDEN = 512, 1024


@triton.jit
def tanh(x):
    return 2.0 * tl.sigmoid(2.0 * x) - 1.0


@triton.jit
def gates(a_ptr, b_ptr, c_ptr, h_out_ptr, c_out_ptr, n, dim, BLOCK: tl.constexpr):
    j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = j < n
    place = (j // dim) * 4 * dim + j % dim
    i = tl.load(a_ptr + place, mask=m) + tl.load(b_ptr + place, mask=m)
    f = tl.load(a_ptr + place + dim, mask=m) + tl.load(b_ptr + place + dim, mask=m)
    g = tl.load(a_ptr + place + 2 * dim, mask=m) + tl.load(b_ptr + place + 2 * dim, mask=m)
    o = tl.load(a_ptr + place + 3 * dim, mask=m) + tl.load(b_ptr + place + 3 * dim, mask=m)
    c = tl.sigmoid(f) * tl.load(c_ptr + j, mask=m) + tl.sigmoid(i) * tanh(g)
    tl.store(c_out_ptr + j, c, mask=m)
    tl.store(h_out_ptr + j, tl.sigmoid(o) * tanh(c), mask=m)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(INPUT, HIDDEN)

    def forward(self, x, h, c):
        cell = self.cell
        a = torch.addmm(cell.bias_ih, x, cell.weight_ih.t())
        b = torch.addmm(cell.bias_hh, h, cell.weight_hh.t())
        new_h, new_c = torch.empty_like(c), torch.empty_like(c)
        gates[(triton.cdiv(c.numel(), 512),)](a, b, c, new_h, new_c, c.numel(), c.shape[1], BLOCK=512)
        return new_h, new_c
