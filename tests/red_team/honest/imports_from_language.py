# relu correct: names imported from triton.language, and the module under another name
import torch
import torch.nn as nn
import triton
import triton.language as tl

import triton.language as lang
from triton.language import arange, load, program_id, store
from triton.language.extra.cuda import libdevice as device


@triton.jit
def relu_kernel(x_ptr, o_ptr, n, BLOCK: lang.constexpr):
    i = program_id(0) * BLOCK + arange(0, BLOCK)
    x = load(x_ptr + i, mask=i < n, other=0.0)
    store(o_ptr + i, lang.where(x > 0, x, device.abs(x) * 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
        return o
