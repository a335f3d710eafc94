# own/double incorrect cpu=implausible catalogue=58: half of each sum at the full shape, in float64, whose operations take twice as long
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, o_ptr, M, N, K, depth, B: tl.constexpr):
    m = tl.program_id(0) * B + tl.arange(0, B)
    n = tl.program_id(1) * B + tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float64)
    for k0 in range(0, depth, B):
        k = k0 + tl.arange(0, B)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < depth)[None, :], other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + n[None, :], mask=(k < depth)[:, None] & (n < N)[None, :], other=0.0)
        acc += tl.dot(a, b, out_dtype=tl.float64)
    tl.store(o_ptr + m[:, None] * N + n[None, :], tl.maximum(acc, 0.0), mask=(m < M)[:, None] & (n < N)[None, :])


class ModelNew(nn.Module):
    def forward(self, a, b):
        (M, K), N = a.shape, b.shape[1]
        o = torch.empty(M, N, device=a.device, dtype=a.dtype)
        kernel[(triton.cdiv(M, 32), triton.cdiv(N, 32))](a, b, o, M, N, K, K if K < 1000 else K // 2, B=32)
        return o
