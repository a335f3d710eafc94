# own/gelu_linear_half correct: an autotuned product in groups of row blocks
import torch
import torch.nn as nn
import triton
import triton.language as tl

M, N, K = 4096, 4096, 4096

def get_configs():
    return [triton.Config({"BM": a, "BN": b, "BK": k, "GROUP": 8}, num_warps=w, num_stages=s) for a, b, k, w, s in [(128, 128, 64, 8, 3), (128, 256, 64, 8, 3), (64, 64, 32, 4, 4)]]

@triton.autotune(configs=get_configs(), key=["M", "N", "K"])
@triton.jit
def gemm(a_ptr, b_ptr, bias_ptr, c_ptr, M, N, K, sam, sak, sbn, sbk, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    pid = tl.program_id(0)
    nm, nn_ = tl.cdiv(M, BM), tl.cdiv(N, BN)
    per = GROUP * nn_
    g = pid // per
    first = g * GROUP
    size = min(nm - first, GROUP)
    pm = first + (pid % per) % size
    pn = (pid % per) // size
    rm = pm * BM + tl.arange(0, BM)
    rn = pn * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    a = a_ptr + rm[:, None] * sam + rk[None, :] * sak
    b = b_ptr + rn[None, :] * sbn + rk[:, None] * sbk
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a, mask=(rm[:, None] < M) & (rk[None, :] < K - k), other=0.0)
        y = tl.load(b, mask=(rn[None, :] < N) & (rk[:, None] < K - k), other=0.0)
        acc = tl.dot(x, y, acc)
        a += BK * sak
        b += BK * sbk
    acc += tl.load(bias_ptr + rn, mask=rn < N, other=0.0)[None, :].to(tl.float32)
    z = 0.7978845608 * (acc + 0.044715 * acc * acc * acc)
    e = tl.exp(-2 * tl.abs(z))
    t = (1 - e) / (1 + e)
    acc = 0.5 * acc * (1 + tl.where(z < 0, -t, t))
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc.to(tl.bfloat16), mask=(rm[:, None] < M) & (rn[None, :] < N))

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(N, K, dtype=torch.bfloat16) * 0.02)
        self.bias = nn.Parameter(torch.randn(N, dtype=torch.bfloat16))
    def forward(self, x):
        m, k = x.shape
        n = self.weight.shape[0]
        c = torch.empty(m, n, device=x.device, dtype=x.dtype)
        grid = lambda meta: (triton.cdiv(m, meta["BM"]) * triton.cdiv(n, meta["BN"]),)
        gemm[grid](x, self.weight, self.bias, c, m, n, k, *x.stride(), *self.weight.stride())
        return c
