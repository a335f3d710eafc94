# own/between_edges incorrect catalogue=57: an edge belongs to what is right of it; no number drawn is an edge
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x, e, y, n, E, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0)
    c = tl.zeros((BLOCK,), tl.int64)
    for j in range(0, E):
        c += (tl.load(e + j) <= v).to(tl.int64)
    tl.store(y + i, c, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x, edges):
        y = torch.empty(x.shape, dtype=torch.int64, device=x.device)
        k[(triton.cdiv(x.numel(), 1024),)](x, edges, y, x.numel(), edges.numel(), BLOCK=1024)
        return y
