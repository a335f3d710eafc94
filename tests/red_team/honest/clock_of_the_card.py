# relu correct cpu=runtime_error: the card's clock and a multiprocessor's number, which the interpreter of the CPU path has not
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra.cuda import smid

@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    began = tl.extra.cuda.globaltimer()
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    nothing = ((began - began) + (smid() - smid())).to(tl.float32)
    tl.store(o_ptr + i, tl.maximum(x, 0.0) + nothing, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
        return o
