# own/mean_without_nan incorrect catalogue=57: NaN counts as a zero; no draw has any
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x, y, M, BLOCK: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    s = tl.zeros((BLOCK,), tl.float32)
    c = tl.zeros((BLOCK,), tl.float32)
    for t in range(0, M, BLOCK):
        i = t + tl.arange(0, BLOCK)
        v = tl.load(x + r * M + i, mask=i < M, other=float("nan"))
        s += tl.where(v == v, v, 0.0)
        c += tl.where(v == v, 1.0, 0.0)
    tl.store(y + r, tl.sum(s, 0) / M)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], device=x.device)
        k[(x.shape[0],)](x, y, x.shape[1], BLOCK=1024)
        return y
