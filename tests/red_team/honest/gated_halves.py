# own/gated_halves correct catalogue=58: reads both halves of its rows, each by one access
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gated(x_ptr, o_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x_ptr + row * 2 * cols + c, mask=c < cols, other=0.0)
    gate = tl.load(x_ptr + row * 2 * cols + cols + c, mask=c < cols, other=0.0)
    tl.store(o_ptr + row * cols + c, value * gate * tl.sigmoid(gate), mask=c < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape[0], x.shape[1] // 2
        o = torch.empty(rows, cols, device=x.device, dtype=x.dtype)
        gated[(rows, triton.cdiv(cols, 1024))](x, o, cols, BLOCK=1024)
        return o
