# relu incorrect cpu=implausible catalogue=51: a heuristic makes the last blocks nothing where there are many
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.heuristics({"SCALE": lambda args: 1.0 if args["n"] < 4000000 else 0.5})
@triton.jit
def kernel(x_ptr, o_ptr, n, SCALE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(o_ptr + at, tl.maximum(x, 0.0) * SCALE, mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
        return o
