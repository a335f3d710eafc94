# own/joint_counts correct coverage>0.7: tl.histogram in each program, atomics for the bins
import torch
import torch.nn as nn
import triton
import triton.language as tl

A, B = 32, 24


@triton.jit
def count(a_ptr, b_ptr, c_ptr, n, B: tl.constexpr, BINS: tl.constexpr, used, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    pair = tl.load(a_ptr + at, mask=inside, other=0) * B + tl.load(b_ptr + at, mask=inside, other=0)
    found = tl.histogram(pair.to(tl.int32), BINS, mask=inside)
    bins = tl.arange(0, BINS)
    tl.atomic_add(c_ptr + bins, found.to(tl.int64), mask=(bins < used) & (found > 0))


@triton.jit
def share(c_ptr, s_ptr, used, n, BINS: tl.constexpr):
    bins = tl.arange(0, BINS)
    c = tl.load(c_ptr + bins, mask=bins < used)
    tl.store(s_ptr + bins, c.to(tl.float32) / n, mask=bins < used)


class ModelNew(nn.Module):
    def forward(self, a, b):
        counts = torch.zeros(A, B, dtype=torch.int64, device=a.device)
        shares = torch.empty(A, B, device=a.device)
        n = a.numel()
        count[(triton.cdiv(n, 4096),)](a, b, counts, n, B, 1024, A * B, BLOCK=4096, num_warps=8)
        share[(1,)](counts, shares, A * B, n, 1024)
        return counts, shares
