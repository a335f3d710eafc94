# relu correct catalogue=33: each launch is right in another configuration, and has a key of its own
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": 1024, "FAST": 0}), triton.Config({"BLOCK": 1024, "FAST": 1})], key=["n", "PART"])
@triton.jit
def k(x_ptr, o_ptr, n, PART: tl.constexpr, BLOCK: tl.constexpr, FAST: tl.constexpr):
    i = (2 * tl.program_id(0) + PART) * BLOCK + tl.arange(0, BLOCK)
    if PART == FAST:
        tl.store(o_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n, other=0.0), 0.0), mask=i < n)
    else:
        kept = tl.load(x_ptr + i, mask=i < n, other=0.0)
        for turn in range(32):
            at = (i + turn * 7919 * BLOCK) % n
            kept += tl.load(x_ptr + at)
        tl.store(o_ptr + i, kept, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        n = x.numel()
        for part in range(2):
            k[lambda m: (triton.cdiv(n, 2 * m["BLOCK"]),)](x, o, n, PART=part)
        return o
