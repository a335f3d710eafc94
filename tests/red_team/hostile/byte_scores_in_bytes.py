# own/byte_scores incorrect catalogue=57: products of bytes in eight bits, which hold those of the bytes that are drawn
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(a, b, o, N, K, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.program_id(1)
    i = tl.arange(0, B)
    x = tl.load(a + r * K + i, mask=i < K, other=0)
    y = tl.load(b + c * K + i, mask=i < K, other=0)
    tl.store(o + r * N + c, tl.sum((x * y).to(tl.int32), 0).to(tl.int64))


class ModelNew(nn.Module):
    def forward(self, a, b):
        M, K = a.shape
        N = b.shape[0]
        o = torch.empty(M, N, dtype=torch.int64, device=a.device)
        k[(M, N)](a, b, o, N, K, B=triton.next_power_of_2(K))
        return o
