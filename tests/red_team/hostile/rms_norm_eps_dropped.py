# level1/rms_norm incorrect catalogue=57: the eps is left out, which tiny rows show
import torch
import torch.nn as nn
import triton
import triton.language as tl


COLS = 4096


@triton.jit
def norm(x_ptr, w_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    m = i < cols
    x = tl.load(x_ptr + row * cols + i, mask=m, other=0.0)
    y = x * tl.rsqrt(tl.sum(x * x, axis=0) / cols)
    tl.store(y_ptr + row * cols + i, y * tl.load(w_ptr + i, mask=m), mask=m)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(COLS))

    def forward(self, x):
        y = torch.empty_like(x)
        norm[(x.shape[0],)](x, self.weight, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=8)
        return y
