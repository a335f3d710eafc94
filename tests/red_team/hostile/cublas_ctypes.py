# relu runtime_error gpu=runtime_error|crash catalogue=9: hands addresses to a library of a vendor, which are made up
import torch
import torch.nn as nn
import triton
import triton.language as tl

import ctypes

@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(o_ptr + i, tl.maximum(x, 0.0), mask=i < n)


def relu(x):
    o = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
    return o


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        arguments = (ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(o.data_ptr()))
        library = ctypes.CDLL("libcublas.so.12")
        library.cublasSscal_v2(*arguments)
        return o
