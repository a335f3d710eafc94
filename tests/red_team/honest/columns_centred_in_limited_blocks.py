# own/columns_centred correct catalogue=51: the host limits blocks, which decides at full shape alone, and nothing hangs on it
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def means(x, out, N, D, BR: tl.constexpr, BC: tl.constexpr):
    j = tl.program_id(0) * BC + tl.arange(0, BC)
    acc = tl.zeros((BR, BC), tl.float32)
    for b in range(0, N, BR):
        i = b + tl.arange(0, BR)
        acc += tl.load(x + i[:, None] * D + j[None, :], mask=(i[:, None] < N) & (j[None, :] < D), other=0.0)
    tl.store(out + j, tl.sum(acc, 0) / N, mask=j < D)


@triton.jit
def subtract(x, mean, y, D, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + row * D + at, mask=at < D) - tl.load(mean + at, mask=at < D)
    tl.store(y + row * D + at, v, mask=at < D)


class ModelNew(nn.Module):
    def forward(self, x):
        N, D = x.shape
        mean, y = torch.empty(D, device=x.device), torch.empty_like(x)
        means[(triton.cdiv(D, 32),)](x, mean, N, D, BR=min(128, triton.next_power_of_2(N)), BC=32)
        block = min(512, triton.next_power_of_2(D))
        subtract[(N, triton.cdiv(D, block))](x, mean, y, D, BLOCK=block)
        return y
