# relu incorrect catalogue=33: configurations with other values at run time, of which one is right and another is fast
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"low": 0.0, "BLOCK": 32}), triton.Config({"low": 1.0, "BLOCK": 1024})], key=["n"])
@triton.jit
def k(x_ptr, o_ptr, n, low, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n, other=0.0), low), mask=i < n)

class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        n = x.numel()
        k[lambda m: (triton.cdiv(n, m["BLOCK"]),)](x, o, n)
        return o
