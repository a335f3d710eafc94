# level2/gelu_gate correct: two views of one input, with their strides
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def gate(a_ptr, b_ptr, y_ptr, cols, a_stride, b_stride, y_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + row * a_stride + c, mask=c < cols)
    b = tl.load(b_ptr + row * b_stride + c, mask=c < cols)
    tl.store(y_ptr + row * y_stride + c, a * 0.5 * b * (1.0 + tl.erf(b * 0.7071067811865476)), mask=c < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        a, b = x.chunk(2, dim=1)
        y = torch.empty(a.shape, device=x.device, dtype=x.dtype)
        grid = (a.shape[0], triton.cdiv(a.shape[1], 1024))
        gate[grid](a, b, y, a.shape[1], a.stride(0), b.stride(0), y.stride(0), BLOCK=1024)
        return y
