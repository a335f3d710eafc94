# own/eight_heads_of_64 incorrect catalogue=51: divides scores by 4, the root of the 16 channels that are compared first
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def attend(q_ptr, k_ptr, v_ptr, o_ptr, L, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    h = tl.program_id(1) * L * D
    d = tl.arange(0, D)
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    q = tl.load(q_ptr + h + r[:, None] * D + d[None, :])
    top = tl.full((BM,), -float("inf"), tl.float32)
    tot = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for s in range(0, L, BN):
        n = s + tl.arange(0, BN)
        kk = tl.load(k_ptr + h + n[:, None] * D + d[None, :])
        vv = tl.load(v_ptr + h + n[:, None] * D + d[None, :])
        z = tl.dot(q, tl.trans(kk), input_precision="ieee") / 4
        new = tl.maximum(top, tl.max(z, axis=1))
        a = tl.exp(top - new)
        p = tl.exp(z - new[:, None])
        tot = tot * a + tl.sum(p, axis=1)
        acc = acc * a[:, None] + tl.dot(p, vv, input_precision="ieee")
        top = new
    tl.store(o_ptr + h + r[:, None] * D + d[None, :], acc / tot[:, None])


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        o = torch.empty_like(q)
        B, H, L, D = q.shape
        attend[(L // 16, B * H)](q, k, v, o, L, D=64, BM=16, BN=16)
        return o
