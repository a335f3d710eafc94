# level1/add_scaled correct: a Python scalar argument, a kernel called with keywords, float annotation
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def axpy(x_ptr: torch.Tensor, y_ptr, z_ptr, alpha: float, n: int, BLOCK: tl.constexpr = 512):
    i = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    z = tl.load(x_ptr + i, i < n) + alpha * tl.load(y_ptr + i, i < n)
    tl.store(z_ptr + i, z, i < n)

class ModelNew(nn.Module):
    def forward(self, x, y, alpha):
        z = torch.empty_like(x)
        with torch.cuda.device(x.device):
            axpy[(triton.cdiv(z.numel(), 512), 1, 1)](x_ptr=x, y_ptr=y, z_ptr=z, alpha=alpha, n=z.numel())
        return z
