# own/mean_of_linked correct: links are truth values, and a comparison chooses by them
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mean(links_ptr, x_ptr, out_ptr, nodes, width, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(1) * WIDE + tl.arange(0, WIDE)
    total = tl.zeros((BLOCK, WIDE), tl.float32)
    count = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, nodes, BLOCK):
        other = start + tl.arange(0, BLOCK)
        inside = (row[:, None] < nodes) & (other[None, :] < nodes)
        linked = tl.load(links_ptr + row[:, None] * nodes + other[None, :], mask=inside, other=0.0) != 0
        chosen = tl.where(linked, 1.0, 0.0)
        at = other[:, None] * width + column[None, :]
        total += tl.dot(chosen, tl.load(x_ptr + at, mask=(other[:, None] < nodes) & (column[None, :] < width), other=0.0))
        count += tl.sum(chosen, 1)
    out = total / tl.maximum(count, 1.0)[:, None]
    tl.store(out_ptr + row[:, None] * width + column[None, :], out, mask=(row[:, None] < nodes) & (column[None, :] < width))


class ModelNew(nn.Module):
    def forward(self, links, x):
        nodes, width = x.shape
        out = torch.empty_like(x)
        mean[(triton.cdiv(nodes, 32), triton.cdiv(width, 32))](links, x, out, nodes, width, BLOCK=32, WIDE=32)
        return out
