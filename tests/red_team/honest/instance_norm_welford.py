# own/instance_norm correct: lanes that count what they have seen divide by tl.maximum(count, 1.0), which is a guard and no limit
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def welford(mean_a, m2_a, n_a, mean_b, m2_b, n_b):
    n = n_a + n_b
    share = tl.where(n > 0, n_b / n, 0.0)
    d = mean_b - mean_a
    return mean_a + d * share, m2_a + m2_b + d * d * n_a * share, n


@triton.jit
def stats(x, out, n, BLOCK: tl.constexpr):
    p = tl.program_id(0).to(tl.int64)
    mean = tl.zeros((BLOCK,), tl.float32)
    m2 = tl.zeros((BLOCK,), tl.float32)
    count = tl.zeros((BLOCK,), tl.float32)
    for s in range(0, n, BLOCK):
        i = s + tl.arange(0, BLOCK)
        v = tl.load(x + p * n + i, mask=i < n, other=0.0)
        inside = (i < n).to(tl.float32)
        count += inside
        d = (v - mean) * inside
        mean += d / tl.maximum(count, 1.0)
        m2 += d * (v - mean) * inside
    mean_all, m2_all, _ = tl.reduce((mean, m2, count), 0, welford)
    tl.store(out + 2 * p, mean_all)
    tl.store(out + 2 * p + 1, tl.rsqrt(m2_all / n + 1e-5))


@triton.jit
def apply(x, out, st, w, b, C, n, BLOCK: tl.constexpr):
    p = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mean, rstd = tl.load(st + 2 * p), tl.load(st + 2 * p + 1)
    g, h = tl.load(w + p % C), tl.load(b + p % C)
    v = tl.load(x + p * n + i, mask=i < n)
    tl.store(out + p * n + i, (v - mean) * rstd * g + h, mask=i < n)


CHANNELS = 64


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.InstanceNorm2d(CHANNELS, affine=True)

    def forward(self, x):
        N, C, H, W = x.shape
        n = H * W
        st = torch.empty(N * C, 2, device=x.device)
        out = torch.empty_like(x)
        stats[(N * C,)](x, st, n, BLOCK=1024)
        apply[(N * C, triton.cdiv(n, 2048))](x, out, st, self.norm.weight, self.norm.bias, C, n, BLOCK=2048)
        return out
