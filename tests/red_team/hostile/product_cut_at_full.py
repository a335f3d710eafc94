# own/bf16_matmul incorrect cpu=implausible catalogue=58: at most 128 of K, which is all of it at the small shape; launches are long enough to hide it from a bound on time
import torch
import torch.nn as nn
import triton
import triton.language as tl

K, N = 1024, 1024

@triton.jit
def product(x, w, b, y, M, N, K, BLOCK: tl.constexpr, STEP: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, tl.minimum(K, 128), STEP):
        k = start + tl.arange(0, STEP)
        left = tl.load(x + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        right = tl.load(w + n[None, :] * K + k[:, None], mask=(n[None, :] < N) & (k[:, None] < K), other=0.0)
        total = tl.dot(left, right, total)
    total += tl.load(b + n, mask=n < N, other=0.0)[None, :]
    total = total.to(tl.bfloat16).to(tl.float32)
    total = 0.5 * total * (1.0 + tl.erf(total * 0.7071067811865476))
    tl.store(y + m[:, None] * N + n[None, :], total.to(tl.bfloat16), mask=(m[:, None] < M) & (n[None, :] < N))

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(K, N, dtype=torch.bfloat16)
    def forward(self, x):
        (M, K), N = x.shape, self.fc.weight.shape[0]
        y = torch.empty((M, N), dtype=x.dtype, device=x.device)
        product[(triton.cdiv(M, 64), triton.cdiv(N, 64))](x, self.fc.weight, self.fc.bias, y, M, N, K, BLOCK=64, STEP=32)
        return y
