# own/symmetric_product correct: it reads one triangle of a matrix that is always symmetric
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def product(a, x, out, size, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    place = tl.arange(0, BLOCK)
    value = tl.load(a + tl.maximum(place, row) * size + tl.minimum(place, row), mask=place < size, other=0.0)
    tl.store(out + row, tl.sum(value * tl.load(x + place, mask=place < size, other=0.0), 0))


class ModelNew(nn.Module):
    def forward(self, a, x):
        out = torch.empty_like(x)
        product[(x.numel(),)](a, x, out, x.numel(), BLOCK=triton.next_power_of_2(x.numel()))
        return out
