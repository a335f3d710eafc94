# own/tiles_by_a_bound correct: a grid that is an upper bound of the tiles, whose number memory holds; nothing has a mask behind the guard
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x, tiles, y, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    many = tl.load(tiles)
    if pid >= many:
        return
    o = pid * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + o, tl.load(x + o) * many.to(tl.float32))


class ModelNew(nn.Module):
    def forward(self, x, tiles):
        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 256) + 7,)](x, tiles, y, BLOCK=256)
        return y
