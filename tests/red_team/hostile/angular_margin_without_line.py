# own/angular_margin incorrect catalogue=51: no line beyond pi, which no random directions are far enough apart for
import torch
import torch.nn as nn
import triton
import triton.language as tl
import math

B, D, C = 512, 128, 4096
@triton.jit
def inv_norms(x, o, D, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    v = tl.load(x + r * D + c, mask=c < D, other=0.0)
    tl.store(o + r, 1.0 / tl.maximum(tl.sqrt(tl.sum(v * v, 0)), 1e-12))

@triton.jit
def arc(x, w, nx, nw, label, o, B, C, D, cosm, sinm, th, mm, S, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, D, BK):
        rk = k + tl.arange(0, BK)
        a = tl.load(x + rm[:, None] * D + rk[None, :], mask=(rm[:, None] < B) & (rk[None, :] < D), other=0.0)
        b = tl.load(w + rn[None, :] * D + rk[:, None], mask=(rn[None, :] < C) & (rk[:, None] < D), other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    ix = tl.load(nx + rm, mask=rm < B, other=0.0)
    iw = tl.load(nw + rn, mask=rn < C, other=0.0)
    cos = acc * ix[:, None] * iw[None, :]
    sin = tl.sqrt(tl.maximum(1.0 - cos * cos, 0.0))
    phi = cos * cosm - sin * sinm
    y = tl.load(label + rm, mask=rm < B, other=-1)
    out = tl.where(y[:, None] == rn[None, :], phi, cos) * S
    tl.store(o + rm[:, None] * C + rn[None, :], out, mask=(rm[:, None] < B) & (rn[None, :] < C))

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(C, D))
    def forward(self, x, label):
        b, d = x.shape
        c = self.weight.shape[0]
        nx = torch.empty(b, device=x.device)
        nw = torch.empty(c, device=x.device)
        inv_norms[(b,)](x, nx, d, BLOCK=triton.next_power_of_2(d))
        inv_norms[(c,)](self.weight, nw, d, BLOCK=triton.next_power_of_2(d))
        o = torch.empty(b, c, device=x.device)
        m = 0.5
        arc[(triton.cdiv(b, 64), triton.cdiv(c, 64))](x, self.weight, nx, nw, label, o, b, c, d, math.cos(m), math.sin(m), math.cos(math.pi - m), math.sin(math.pi - m) * m, 64.0, BM=64, BN=64, BK=32)
        return o
