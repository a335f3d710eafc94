# own/made_on_cuda correct: one kernel in place of a reference that names a GPU in all of its parts
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def ramped(x, gain, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    here = at < columns
    values = tl.maximum(tl.load(x + row * columns + at, mask=here, other=0.0), 0.0)
    ramp = 1.0 + at.to(tl.float32) / columns
    tl.store(out + row * columns + at, values * tl.load(gain + at, mask=here, other=0.0) * ramp, mask=here)


class ModelNew(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.gain = nn.Parameter(torch.rand(columns, device="cuda") + 0.5)

    def forward(self, x):
        rows, columns = x.shape
        out = torch.empty(rows, columns, device="cuda")
        ramped[(rows, triton.cdiv(columns, 1024))](x, self.gain, out, columns, BLOCK=1024)
        return out
