# relu correct: 384 configurations, as a grid of four knobs has
import torch
import torch.nn as nn
import triton
import triton.language as tl

GRID = [
    triton.Config({"BLOCK": block, "PARTS": parts}, num_warps=warps, num_stages=stages)
    for block in (256, 512, 1024, 2048)
    for parts in (1, 2, 4, 8)
    for warps in (1, 2, 4, 8, 16, 32)
    for stages in (1, 2, 3, 4)
]


@triton.autotune(configs=GRID, key=["n"])
@triton.jit
def relu(x, out, n, BLOCK: tl.constexpr, PARTS: tl.constexpr):
    for part in range(PARTS):
        at = (tl.program_id(0) * PARTS + part) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + at, tl.maximum(tl.load(x + at, mask=at < n), 0.0), mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        relu[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"] * meta["PARTS"]),)](x, out, x.numel())
        return out
