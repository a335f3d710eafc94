# relu out_of_bounds catalogue=59: a host descriptor claims twice the rows that its tensor has, and reads them
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def kernel(x, o, rows, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    beyond = x.load([row + rows, 0])
    o.store([row, 0], tl.maximum(x.load([row, 0]), 0.0) + 0.0 * beyond)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        o = torch.empty_like(x)
        wide = TensorDescriptor(x, [2 * rows, cols], [cols, 1], [1, 64])
        kernel[(rows,)](wide, TensorDescriptor.from_tensor(o, [1, 64]), rows, BLOCK=64)
        return o
