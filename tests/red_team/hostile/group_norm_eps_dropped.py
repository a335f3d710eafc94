# level1/group_norm incorrect catalogue=57: the eps is left out, which tiny rows show
import torch
import torch.nn as nn
import triton
import triton.language as tl


CHANNELS = 128


@triton.jit
def norm(x_ptr, w_ptr, b_ptr, y_ptr, channels, size, GROUPS: tl.constexpr, BLOCK: tl.constexpr):
    group = tl.program_id(0)
    count = channels // GROUPS * size
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, count, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + group * count + i, mask=i < count, other=0.0)
    mean = tl.sum(total, axis=0) / count
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, count, BLOCK):
        i = start + tl.arange(0, BLOCK)
        d = tl.load(x_ptr + group * count + i, mask=i < count, other=0.0) - mean
        squares += tl.where(i < count, d * d, 0.0)
    scale = tl.rsqrt(tl.sum(squares, axis=0) / count)
    for start in range(0, count, BLOCK):
        i = start + tl.arange(0, BLOCK)
        m = i < count
        c = (group % GROUPS) * (channels // GROUPS) + i // size
        y = (tl.load(x_ptr + group * count + i, mask=m) - mean) * scale
        tl.store(y_ptr + group * count + i, y * tl.load(w_ptr + c, mask=m) + tl.load(b_ptr + c, mask=m), mask=m)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(CHANNELS))
        self.bias = nn.Parameter(torch.randn(CHANNELS))

    def forward(self, x):
        y = torch.empty_like(x)
        norm[(x.shape[0] * 4,)](x, self.weight, self.bias, y, x.shape[1], x.shape[2], GROUPS=4, BLOCK=1024)
        return y
