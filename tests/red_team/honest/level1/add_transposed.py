# level1/add_transposed correct: the second input is a transposed view: its strides are arguments
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_strided(x_ptr, y_ptr, out_ptr, rows, cols, xr, xc, yr, yc, BLOCK: tl.constexpr):
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    m = (r < rows) & (c < cols)
    x = tl.load(x_ptr + r * xr + c * xc, mask=m)
    y = tl.load(y_ptr + r * yr + c * yc, mask=m)
    tl.store(out_ptr + r * cols + c, x + y, mask=m)


class ModelNew(nn.Module):
    def forward(self, x, y):
        rows, cols = x.shape
        out = torch.empty((rows, cols), device=x.device, dtype=x.dtype)
        grid = (triton.cdiv(rows, 32), triton.cdiv(cols, 32))
        add_strided[grid](x, y, out, rows, cols, x.stride(0), x.stride(1), y.stride(0), y.stride(1), BLOCK=32)
        return out
