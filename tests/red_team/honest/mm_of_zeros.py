# own/rectified_product correct: all of a product, of which one operand has zeros that lie elsewhere in each draw
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(a, b, c, M, N, K, sam, sbk, scm, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, G: tl.constexpr, IP: tl.constexpr):
    pid = tl.program_id(0)
    nm, nn_ = tl.cdiv(M, BM), tl.cdiv(N, BN)
    width = G * nn_
    first = pid // width * G
    size = min(nm - first, G)
    pm = first + (pid % width) % size
    pn = (pid % width) // size
    rm, rn, rk = pm * BM + tl.arange(0, BM), pn * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k0 in range(0, K, BK):
        x = tl.load(a + rm[:, None] * sam + (k0 + rk)[None, :], mask=(rm[:, None] < M) & ((k0 + rk)[None, :] < K), other=0.0)
        w = tl.load(b + (k0 + rk)[:, None] * sbk + rn[None, :], mask=((k0 + rk)[:, None] < K) & (rn[None, :] < N), other=0.0)
        acc = tl.dot(x, w, acc, input_precision=IP)
    tl.store(c + rm[:, None] * scm + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


class ModelNew(nn.Module):
    def forward(self, a, b):
        M, K = a.shape
        N = b.shape[1]
        c = torch.empty((M, N), device=a.device, dtype=a.dtype)
        k[(triton.cdiv(M, 64) * triton.cdiv(N, 64),)](a, b, c, M, N, K, a.stride(0), b.stride(0), c.stride(0), BM=64, BN=64, BK=32, G=8, IP="tf32")
        return c
