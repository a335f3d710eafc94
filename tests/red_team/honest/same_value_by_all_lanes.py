# own/column_squares correct coverage>0.9: all elements of a store bring the same value to one address
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, o_ptr, R, C, BR: tl.constexpr):
    c = tl.program_id(0)
    r = tl.arange(0, BR)
    acc = tl.zeros((BR,), tl.float32)
    for start in range(0, R, BR):
        x = tl.load(x_ptr + (start + r) * C + c, mask=start + r < R, other=0.0)
        acc += x * x
    total = tl.sum(acc, 0)
    tl.store(o_ptr + c + r * 0, total + tl.zeros((BR,), tl.float32))


class ModelNew(nn.Module):
    def forward(self, x):
        R, C = x.shape
        o = torch.empty(C, device=x.device)
        kernel[(C,)](x, o, R, C, BR=128)
        return o
