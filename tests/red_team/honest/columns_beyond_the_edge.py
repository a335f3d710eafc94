# own/even_product correct: calls columns neighbours of which those beyond the edge are the first one, and never stores them
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(A, B, C, M, N, K, sam, sak, sbk, sbn, scm, scn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    rm = pid_m * BM + tl.arange(0, BM)
    rn = pid_n * BN + tl.arange(0, BN)
    ram = tl.where(rm < M, rm, 0)
    rbn = tl.where(rn < N, rn, 0)
    ram = tl.max_contiguous(tl.multiple_of(ram, BM), BM)
    rbn = tl.max_contiguous(tl.multiple_of(rbn, BN), BN)
    rk = tl.arange(0, BK)
    a = A + (ram[:, None] * sam + rk[None, :] * sak)
    b = B + (rk[:, None] * sbk + rbn[None, :] * sbn)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        left = tl.load(a, mask=rk[None, :] < K - k * BK, other=0.0)
        right = tl.load(b, mask=rk[:, None] < K - k * BK, other=0.0)
        total += tl.dot(left, right)
        a += BK * sak
        b += BK * sbk
    tl.store(C + rm[:, None] * scm + rn[None, :] * scn, total, mask=(rm < M)[:, None] & (rn < N)[None, :])


class ModelNew(nn.Module):
    def forward(self, a, b):
        M, K = a.shape
        N = b.shape[1]
        c = torch.empty(M, N, device=a.device, dtype=a.dtype)
        grid = triton.cdiv(M, 64), triton.cdiv(N, 64)
        kernel[grid](a, b, c, M, N, K, *a.stride(), *b.stride(), *c.stride(), BM=64, BN=64, BK=32)
        return c
