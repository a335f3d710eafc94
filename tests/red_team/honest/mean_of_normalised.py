# own/mean_of_normalised correct coverage>0: its running mean is another noise than the reference's, and as large
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mix_kernel(x, w, y, C: tl.constexpr, P, BLOCK_C: tl.constexpr, BLOCK_P: tl.constexpr):
    image, p = tl.program_id(0), tl.program_id(1) * BLOCK_P + tl.arange(0, BLOCK_P)
    o, k = tl.arange(0, BLOCK_C), tl.arange(0, BLOCK_C)
    weight = tl.load(w + o[:, None] * C + k[None, :], mask=(o[:, None] < C) & (k[None, :] < C), other=0.0)
    pixels = tl.load(x + (image * C + k[:, None]) * P + p[None, :], mask=(k[:, None] < C) & (p[None, :] < P), other=0.0)
    mixed = tl.dot(weight, pixels, input_precision="ieee")
    tl.store(y + (image * C + o[:, None]) * P + p[None, :], mixed, mask=(o[:, None] < C) & (p[None, :] < P))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.BatchNorm2d(C)
        self.mix = nn.Conv2d(C, C, 1, bias=False)
        self.second = nn.BatchNorm2d(C)

    def forward(self, x):
        x = self.first(x)
        y = torch.empty_like(x)
        b, c, h, w = x.shape
        block = max(16, triton.next_power_of_2(c))
        mix_kernel[(b, triton.cdiv(h * w, 64))](x, self.mix.weight, y, C=c, P=h * w, BLOCK_C=block, BLOCK_P=64)
        return torch.relu(self.second(y))


C = 64
