# own/means_of_counted_segments correct coverage>0.4: it goes by how many rows each segment has, which is given beside the segments of the rows
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def means(x, ends, counts, y, C, BC: tl.constexpr, BR: tl.constexpr):
    one, cols = tl.program_id(0), tl.program_id(1) * BC + tl.arange(0, BC)
    count, end = tl.load(counts + one), tl.load(ends + one)
    total = tl.zeros((BC,), tl.float32)
    for first in range(0, count, BR):
        rows = end - count + first + tl.arange(0, BR)
        inside = (rows[:, None] < end) & (cols < C)
        total += tl.sum(tl.load(x + rows[:, None] * C + cols, mask=inside, other=0.0), 0)
    tl.store(y + one * C + cols, total / tl.maximum(count, 1).to(tl.float32), mask=cols < C)


class ModelNew(nn.Module):
    def forward(self, x, segments, counts):
        y = torch.empty(counts.shape[0], x.shape[1], device=x.device)
        ends = counts.cumsum(0)
        means[(counts.shape[0], triton.cdiv(x.shape[1], 64))](x, ends, counts, y, x.shape[1], BC=64, BR=16)
        return y
