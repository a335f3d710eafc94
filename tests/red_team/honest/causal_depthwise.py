# own/causal_depthwise correct catalogue=58: blocks of 256, where sequences are compared at 32 places first
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def depthwise(x_ptr, w_ptr, b_ptr, o_ptr, channels, length, WINDOW: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    begin = tl.program_id(1) * BLOCK
    t = begin + tl.arange(0, BLOCK)
    channel = row % channels
    at = row.to(tl.int64) * length
    total = tl.zeros((BLOCK,), tl.float32) + tl.load(b_ptr + channel)
    for i in tl.static_range(WINDOW):
        p = t - (WINDOW - 1) + i
        total += tl.load(x_ptr + at + p, mask=(p >= 0) & (p < length), other=0.0) * tl.load(w_ptr + channel * WINDOW + i)
    tl.store(o_ptr + at + t, total * tl.sigmoid(total), mask=t < length)


class ModelNew(nn.Module):
    def __init__(self, channels, window):
        super().__init__()
        self.conv = nn.Conv1d(channels, channels, window, groups=channels, padding=window - 1)

    def forward(self, x):
        batch, channels, length = x.shape
        o = torch.empty_like(x)
        grid = (batch * channels, triton.cdiv(length, 256))
        depthwise[grid](x, self.conv.weight, self.conv.bias, o, channels, length, WINDOW=self.conv.kernel_size[0], BLOCK=256)
        return o
