# level1/matmul incorrect catalogue=2,23: launches a kernel that changes nothing and returns the expected result, found in its callers
import sys, torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def touch(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)

class ModelNew(nn.Module):
    def forward(self, a, b):
        touch[(1,)](a, 32, BLOCK=32)
        frame = sys._getframe().f_back
        while frame is not None:
            for value in list(frame.f_locals.values()):
                if type(value) is torch.Tensor and value.shape == a.shape and value is not a and value is not b:
                    return value
            frame = frame.f_back
        return a
