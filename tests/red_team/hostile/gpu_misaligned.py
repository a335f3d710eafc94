# relu out_of_bounds catalogue=79: reads float32 at an odd address, of its last element's last bytes too
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    odd = (x_ptr.to(tl.int64) + 1 + 4 * i.to(tl.int64)).to(tl.pointer_type(tl.float32))
    tl.store(o_ptr + i, tl.maximum(tl.load(odd, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
        return o
