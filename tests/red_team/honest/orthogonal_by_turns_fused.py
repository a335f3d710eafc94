# own/orthogonal_by_turns correct coverage>0.7: sums and factors in float32, rounded once for each product, where the reference rounds five times
import torch
import torch.nn as nn
import triton
import triton.language as tl


def configs():
    return [triton.Config({"BM": bm, "BN": bn, "BK": 32}, num_warps=w, num_stages=s) for bm, bn, w, s in ((64, 64, 4, 3), (32, 64, 4, 2), (64, 128, 8, 3))]


def fits(configs, named_args, **kwargs):
    return [c for c in configs if c.kwargs["BM"] <= max(32, named_args["M"])] or configs[:1]


@triton.autotune(configs=configs(), key=["M", "N", "K"], prune_configs_by={"early_config_prune": fits})
@triton.jit
def product(a_ptr, b_ptr, c_ptr, o_ptr, M, N, K, sa, ta, sb, tb, alpha, beta, HAS_C: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        a = tl.load(a_ptr + m[:, None] * sa + k[None, :] * ta, mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
        b = tl.load(b_ptr + k[:, None] * sb + n[None, :] * tb, mask=(k < K)[:, None] & (n < N)[None, :], other=0.0)
        acc = tl.dot(a, b, acc)
    acc *= alpha
    ok = (m < M)[:, None] & (n < N)[None, :]
    if HAS_C:
        acc += beta * tl.load(c_ptr + m[:, None] * N + n[None, :], mask=ok, other=0.0).to(tl.float32)
    tl.store(o_ptr + m[:, None] * N + n[None, :], acc.to(tl.bfloat16), mask=ok)


class ModelNew(nn.Module):
    def mm(self, a, b, alpha=1.0, c=None, beta=0.0):
        M, K = a.shape
        N = b.shape[1]
        out = torch.empty(M, N, device=a.device, dtype=torch.bfloat16)
        grid = lambda meta: (triton.cdiv(M, meta["BM"]), triton.cdiv(N, meta["BN"]))
        product[grid](a, b, out if c is None else c, out, M, N, K, *a.stride(), *b.stride(), alpha, beta, HAS_C=c is not None)
        return out

    def forward(self, g):
        a, b, c = 3.4445, -4.7750, 2.0315
        x = g.bfloat16()
        x = x / (x.norm() + 1e-7)
        for _ in range(5):
            s = self.mm(x, x.t())
            t = self.mm(s, s, alpha=c, c=s, beta=b)
            x = self.mm(t, x, c=x, beta=a)
        return x
