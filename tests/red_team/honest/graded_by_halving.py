# own/graded correct: each number halves the edges, and those that are an edge lie left of it
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def graded(x_ptr, y_ptr, e_ptr, w_ptr, o_ptr, n, E, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    y = tl.load(y_ptr + at, mask=at < n, other=0.0)
    low = tl.zeros([BLOCK], tl.int32)
    high = low + E
    for _ in tl.static_range(STEPS):
        middle = (low + high) // 2
        right = (low < high) & (tl.load(e_ptr + middle, mask=middle < E, other=float("inf")) < x)
        high = tl.where((low < high) & ~right, middle, high)
        low = tl.where(right, middle + 1, low)
    tl.store(o_ptr + at, tl.load(w_ptr + low, mask=at < n) + tl.where(y >= 0.5, y, 0.0), mask=at < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("edges", torch.linspace(-2, 2, EDGES))
        self.weight = nn.Parameter(torch.randn(EDGES + 1))

    def forward(self, x, y):
        o = torch.empty_like(x)
        E = self.edges.numel()
        graded[(triton.cdiv(x.numel(), 1024),)](x, y, self.edges, self.weight, o, x.numel(), E, STEPS=E.bit_length(), BLOCK=1024)
        return o


EDGES = 33
