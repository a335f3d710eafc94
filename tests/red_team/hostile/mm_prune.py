# level2/matmul_bias_relu incorrect catalogue=58: its autotuner is pruned by shape, so that another configuration is timed than is checked
import torch, triton
import torch.nn as nn
import triton.language as tl
def prune(configs, named_args, **kw):
    return configs if named_args["M"] > 1000 else configs[:1]
K = 1024
N = 2048
@triton.autotune(configs=[triton.Config({"BK": 32, "LESS": 1}), triton.Config({"BK": 32, "LESS": 16})], key=["M"], prune_configs_by={"early_config_prune": prune})
@triton.jit
def mm(a, b, bias, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, LESS: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK) // LESS):
        ks = k * BK + tl.arange(0, BK)
        x = tl.load(a + rm[:, None] * K + ks[None, :], mask=(rm[:, None] < M) & (ks[None, :] < K), other=0.0)
        y = tl.load(b + ks[:, None] * N + rn[None, :], mask=(ks[:, None] < K) & (rn[None, :] < N), other=0.0)
        acc += tl.dot(x, y, input_precision="ieee")
    acc = tl.maximum(acc + tl.load(bias + rn, mask=rn < N, other=0.0)[None, :], 0.0)
    tl.store(c + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(K, N))
        self.bias = nn.Parameter(torch.randn(N))
    def forward(self, x):
        M, K = x.shape; N = self.weight.shape[1]
        c = torch.empty((M, N), device=x.device)
        mm[(triton.cdiv(M, 64), triton.cdiv(N, 64))](x, self.weight, self.bias, c, M, N, K, BM=64, BN=64)
        return c
