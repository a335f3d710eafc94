# own/value_counts correct coverage>0.7: a histogram of each block, added up by atomics
import torch
import torch.nn as nn
import triton
import triton.language as tl

VALUES = 1024


@triton.jit
def count(values, counts, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    found = tl.histogram(tl.load(values + o, mask=o < n, other=0).to(tl.int32), BINS, mask=o < n)
    tl.atomic_add(counts + tl.arange(0, BINS), found.to(tl.int64))


class ModelNew(nn.Module):
    def forward(self, values):
        counts = torch.zeros(VALUES, dtype=torch.int64, device=values.device)
        n = values.numel()
        count[(triton.cdiv(n, 2048),)](values, counts, n, BINS=VALUES, BLOCK=2048)
        return counts
