# own/scores_of_the_same correct catalogue=53: both inputs and each row are read
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, n_ptr, o_ptr, g_ptr, s_ptr, y_ptr, LENGTH, N, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < N
    x = tl.load(x_ptr + offs, mask=mask, other=0.0)
    name = tl.load(n_ptr + offs, mask=mask, other=0)
    other = tl.load(o_ptr + offs, mask=mask, other=0)
    gain = tl.load(g_ptr + name, mask=mask, other=0.0)
    shift = tl.load(s_ptr + other, mask=mask, other=0.0)
    tl.store(y_ptr + offs, x * gain + shift, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, kinds):
        super().__init__()
        self.gain = nn.Parameter(torch.randn(kinds))
        self.shift = nn.Parameter(torch.randn(kinds))

    def forward(self, x, names, others):
        y = torch.empty_like(x)
        grid = (triton.cdiv(x.numel(), 1024),)
        kernel[grid](x, names, others, self.gain, self.shift, y, x.shape[1], x.numel(), BLOCK=1024)
        return y
