# own/places_of_a_table incorrect catalogue=57: takes the row of its own number, which is its place in each draw
import torch
import torch.nn as nn
import triton
import triton.language as tl

V, S, D = 4096, 4096, 512

@triton.jit
def k(idx, pos, w, p, y, D, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    m = c < D
    a = tl.load(idx + r)
    b = r
    tl.store(y + r * D + c, tl.load(w + a * D + c, mask=m, other=0.0) + tl.load(p + b * D + c, mask=m, other=0.0), mask=m)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(V, D))
        self.p = nn.Parameter(torch.randn(V, D))

    def forward(self, idx, pos):
        y = torch.empty(idx.shape[0], self.w.shape[1], device=idx.device)
        k[(idx.shape[0],)](idx, pos, self.w, self.p, y, self.w.shape[1], BLOCK=triton.next_power_of_2(self.w.shape[1]))
        return y
