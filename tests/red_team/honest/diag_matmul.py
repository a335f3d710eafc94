# own/diag_matmul correct: scales rows in place of a product with a diagonal matrix, of which nothing else matters
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_rows(a_ptr, b_ptr, c_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    b = tl.load(b_ptr + row * columns + i, mask=i < columns)
    tl.store(c_ptr + row * columns + i, tl.load(a_ptr + row) * b, mask=i < columns)


class ModelNew(nn.Module):
    def forward(self, a, b):
        c = torch.empty_like(b)
        scale_rows[(b.shape[0], triton.cdiv(b.shape[1], 1024))](a, b, c, b.shape[1], BLOCK=1024)
        return c
