# own/strided_inputs incorrect catalogue=53: takes every second column of a wider tensor to lie side by side
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def blend(x, row, windows, y, M, N, sxm, sxn, srm, srn, swm, swn, BM: tl.constexpr, BN: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    n = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    inside = (m < M) & (n < N)
    a = tl.load(x + m * sxm + n * sxn, mask=inside, other=0.0)
    b = tl.load(windows + m * swm + n * swn, mask=inside, other=0.0)
    r = tl.load(row + m * srm + n * srn, mask=inside, other=0.0)
    tl.store(y + m * N + n, tl.maximum(r + 0.5 * a * b, 0.0), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x, row, windows):
        M, N = x.shape
        y = torch.empty((M, N), device=x.device, dtype=x.dtype)
        grid = (triton.cdiv(M, 8), triton.cdiv(N, 128))
        blend[grid](x, row, windows, y, M, N, x.stride(0), 1, *row.stride(), *windows.stride(), BM=8, BN=128)
        return y
