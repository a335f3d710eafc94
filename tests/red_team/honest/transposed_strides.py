# level1/add_transposed correct: strided input, two-dimensional grid, assertions on devices
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def add(x_ptr, y_ptr, z_ptr, rows, cols, sxr, sxc, syr, syc, R: tl.constexpr, C: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)[:, None]
    c = tl.program_id(1) * C + tl.arange(0, C)[None, :]
    keep = (r < rows) & (c < cols)
    z = tl.load(x_ptr + r * sxr + c * sxc, mask=keep) + tl.load(y_ptr + r * syr + c * syc, mask=keep)
    tl.store(z_ptr + r * cols + c, z, mask=keep)

class ModelNew(nn.Module):
    def forward(self, x, y):
        assert x.is_cuda and y.device == x.device
        rows, cols = x.shape
        z = torch.empty((rows, cols), device="cuda", dtype=x.dtype)
        grid = (triton.cdiv(rows, 32), triton.cdiv(cols, 32))
        add[grid](x, y, z, rows, cols, *x.stride(), *y.stride(), R=32, C=32)
        return z
