# level3/residual_block correct coverage<0.95: the convolution by torch; statistics, normalisation, ReLU and sum by one kernel
import torch
import torch.nn as nn
import triton
import triton.language as tl

CHANNELS = 64


@triton.jit
def norm_relu_add(y_ptr, x_ptr, w_ptr, b_ptr, o_ptr, size, pixels, per_group, groups, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    base = pid.to(tl.int64) * size
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, size, BLOCK):
        i = start + tl.arange(0, BLOCK)
        acc += tl.load(y_ptr + base + i, mask=i < size, other=0.0)
    mean = tl.sum(acc, axis=0) / size
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, size, BLOCK):
        i = start + tl.arange(0, BLOCK)
        d = tl.where(i < size, tl.load(y_ptr + base + i, mask=i < size, other=0.0) - mean, 0.0)
        acc += d * d
    scale = 1.0 / tl.sqrt(tl.sum(acc, axis=0) / size + 1e-5)
    for start in range(0, size, BLOCK):
        i = start + tl.arange(0, BLOCK)
        m = i < size
        channel = (pid % groups) * per_group + i // pixels
        y = (tl.load(y_ptr + base + i, mask=m) - mean) * scale
        y = y * tl.load(w_ptr + channel, mask=m) + tl.load(b_ptr + channel, mask=m)
        tl.store(o_ptr + base + i, tl.load(x_ptr + base + i, mask=m) + tl.maximum(y, 0.0), mask=m)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1)
        self.weight = nn.Parameter(torch.randn(CHANNELS))
        self.bias = nn.Parameter(torch.randn(CHANNELS))

    def forward(self, x):
        batch, channels, height, width = x.shape
        y = self.conv(x).contiguous()
        o = torch.empty_like(x)
        per_group = channels // 4
        size = per_group * height * width
        norm_relu_add[(batch * 4,)](
            y, x, self.weight, self.bias, o, size, height * width, per_group, 4, BLOCK=2048, num_warps=8
        )
        return o
