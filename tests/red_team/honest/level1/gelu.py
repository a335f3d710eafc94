# level1/gelu correct: autotuned elementwise kernel; the grid depends on the chosen block
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 1024}, num_warps=4),
        triton.Config({"BLOCK": 2048}, num_warps=8),
        triton.Config({"BLOCK": 512}, num_warps=2),
    ],
    key=["n"],
)
@triton.jit
def gelu(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    x = tl.load(x_ptr + i, mask=m)
    tl.store(y_ptr + i, 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476)), mask=m)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        n = x.numel()
        gelu[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, n)
        return y
