# own/limited_scale correct: the parameter's exponential is limited in the kernel
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norm(x_ptr, scale_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=0.0)
    scale = tl.minimum(tl.exp(tl.load(scale_ptr)), 100.0)
    tl.store(out_ptr + row * columns + at, scale * x / tl.sqrt(tl.sum(x * x, 0)), mask=at < columns)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(2.6593))

    def forward(self, x):
        rows, columns = x.shape
        out = torch.empty_like(x)
        norm[(rows,)](x, self.scale, out, columns, BLOCK=triton.next_power_of_2(columns))
        return out
