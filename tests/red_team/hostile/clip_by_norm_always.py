# own/clip_by_norm incorrect catalogue=51: the limit of one, which only small inputs reach, is left out
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def squares(x, parts, n, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), tl.float32)
    for s in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        v = tl.load(x + s + tl.arange(0, BLOCK), mask=s + tl.arange(0, BLOCK) < n, other=0.0)
        acc += v * v
    tl.store(parts + tl.program_id(0), tl.sum(acc, 0))


@triton.jit
def scale(x, parts, out, n, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.sqrt(tl.sum(tl.load(parts + tl.arange(0, PARTS)), 0))
    factor = 10.0 / (total + 1e-6)
    tl.store(out + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)


class ModelNew(nn.Module):
    PARTS = 512

    def forward(self, x):
        n = x.numel()
        parts, out = torch.empty(self.PARTS, device=x.device), torch.empty_like(x)
        squares[(self.PARTS,)](x, parts, n, BLOCK=1024)
        scale[(triton.cdiv(n, 1024),)](x, parts, out, n, PARTS=self.PARTS, BLOCK=1024)
        return out
