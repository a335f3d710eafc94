# own/running_minimum correct: a scan of pairs that takes the later one of equal numbers, as PyTorch does
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def comb(a, i, b, j):
    take = a < b
    return tl.where(take, a, b), tl.where(take, i, j)


@triton.jit
def k(x, v, w, M, BLOCK: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    a = tl.load(x + r * M + i, mask=i < M, other=float("inf"))
    b, j = tl.associative_scan((a, i.to(tl.int64)), 0, comb)
    tl.store(v + r * M + i, b, mask=i < M)
    tl.store(w + r * M + i, j, mask=i < M)


class ModelNew(nn.Module):
    def forward(self, x):
        v = torch.empty_like(x); w = torch.empty(x.shape, dtype=torch.int64, device=x.device)
        k[(x.shape[0],)](x, v, w, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return v, w
