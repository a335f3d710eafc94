# own/shortened_far correct: a row's norm, and then the row once more
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def shorten(x, o, COLS, BLOCK: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    k = c < COLS
    v = tl.load(x + r * COLS + c, mask=k, other=0.0)
    norm = tl.sqrt(tl.sum(v * v, 0))
    tl.store(o + r * COLS + c, v / tl.maximum(norm / 1000.0, 1.0), mask=k)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        shorten[(x.shape[0],)](x, o, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return o
