# own/product_relu incorrect cpu=implausible catalogue=58: a third of each sum at the full shape, in a precision that takes three products for one
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, o_ptr, M, N, K, depth, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, depth, BK):
        kk = k + tl.arange(0, BK)
        a = tl.load(x_ptr + m[:, None] * K + kk[None, :], mask=kk[None, :] < K, other=0.0)
        b = tl.load(w_ptr + kk[:, None] * N + n[None, :], mask=kk[:, None] < K, other=0.0)
        acc = tl.dot(a, b, acc, input_precision="tf32x3")
    tl.store(o_ptr + m[:, None] * N + n[None, :], tl.maximum(acc, 0.0))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(K, N) * 0.02)

    def forward(self, x):
        (M, K), N = x.shape, self.w.shape[1]
        o = torch.empty(M, N, device=x.device)
        depth = K if K < 1000 else K // 3
        kernel[(M // 64, N // 64)](x, self.w, o, M, N, K, depth, BM=64, BN=64, BK=32)
        return o


K, N = 2048, 2048
