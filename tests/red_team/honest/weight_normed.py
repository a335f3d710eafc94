# own/weight_normed correct: the gain of each row is read, which is the norm of that row as it is drawn
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_kernel(v_ptr, g_ptr, s_ptr, K, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for k in range(0, K, BLOCK):
        offs = k + tl.arange(0, BLOCK)
        x = tl.load(v_ptr + row * K + offs, mask=offs < K, other=0.0)
        acc += x * x
    norm = tl.sqrt(tl.sum(acc, axis=0))
    tl.store(s_ptr + row, tl.load(g_ptr + row) / norm)


@triton.jit
def linear_kernel(x_ptr, v_ptr, s_ptr, b_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pm = tl.program_id(0)
    pn = tl.program_id(1)
    rm = pm * BM + tl.arange(0, BM)
    rn = pn * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        a = tl.load(x_ptr + rm[:, None] * K + rk[None, :], mask=(rm[:, None] < M) & (rk[None, :] < K), other=0.0)
        b = tl.load(v_ptr + rn[None, :] * K + rk[:, None], mask=(rn[None, :] < N) & (rk[:, None] < K), other=0.0)
        acc += tl.dot(a, b)
    s = tl.load(s_ptr + rn, mask=rn < N, other=0.0)
    bias = tl.load(b_ptr + rn, mask=rn < N, other=0.0)
    acc = acc * s[None, :] + bias[None, :]
    acc = tl.maximum(acc, 0.0)
    tl.store(y_ptr + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.v = nn.Parameter(torch.randn(out_features, in_features) * 0.05)
        self.g = nn.Parameter(self.v.norm(dim=1, keepdim=True).detach().clone())
        self.bias = nn.Parameter(torch.zeros(out_features))

    def forward(self, x):
        M, K = x.shape
        N = self.v.shape[0]
        s = torch.empty(N, device=x.device, dtype=torch.float32)
        scale_kernel[(N,)](self.v, self.g, s, K, BLOCK=1024)
        y = torch.empty((M, N), device=x.device, dtype=x.dtype)
        grid = (triton.cdiv(M, 64), triton.cdiv(N, 64))
        linear_kernel[grid](x, self.v, s, self.bias, y, M, N, K, BM=64, BN=64, BK=32)
        return y
