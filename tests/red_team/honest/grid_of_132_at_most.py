# relu correct: a persistent kernel with the number of processors as it is, in its grid and in its stride
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def relu(x_ptr, o_ptr, n, tiles, BLOCK: tl.constexpr, PROGRAMS: tl.constexpr):
    for tile in range(tl.program_id(0), tiles, PROGRAMS):
        at = tile * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < n)
        tl.store(o_ptr + at, tl.maximum(x, 0.0), mask=at < n)

class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        tiles = triton.cdiv(x.numel(), 1024)
        relu[(min(132, tiles),)](x, o, x.numel(), tiles, BLOCK=1024, PROGRAMS=132)
        return o
