# own/long_rows_rms correct: rows of bfloat16 whose numbers differ in size from place to place
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rms(x, out, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    place = tl.arange(0, BLOCK)
    value = tl.load(x + row * cols + place, mask=place < cols, other=0.0).to(tl.float32)
    size = tl.rsqrt(tl.sum(value * value, 0) / cols + 1e-6)
    tl.store(out + row * cols + place, value * size, mask=place < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        out = torch.empty_like(x)
        rms[(rows,)](x, out, cols, BLOCK=triton.next_power_of_2(cols))
        return out
