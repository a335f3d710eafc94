# own/keyed_results correct coverage>0.3: a dict with a number and a tuple as keys, beside a NaN that is no tensor
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl

@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(y_ptr + i, tl.maximum(x, 0.0), mask=i < n)
def launch(x):
    y = torch.empty_like(x)
    n = x.numel()
    k[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
    return y
class ModelNew(nn.Module):
    def forward(self, x):
        return {0: launch(x), ("sum", 1): x.sum(1)}, float("nan")
