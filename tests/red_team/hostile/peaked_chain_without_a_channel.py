# own/peaked_chain incorrect catalogue=57: of one channel in four it writes the mean of all
import torch
import torch.nn as nn
import triton
import triton.language as tl

FEATURES = 64
LAYERS = 6
GAIN = 3.0


@triton.jit
def add_relu(x_ptr, y_ptr, n, size, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0) + 0.1
    tl.store(y_ptr + i, tl.where(i // size % 4 == 3, 0.1, tl.maximum(x, 0.0)), mask=i < n)


class Peaked(nn.Module):
    def forward(self, x):
        return torch.softmax(GAIN * x, -1)


def layers():
    made = []
    for index in range(LAYERS):
        made += [nn.Conv2d(FEATURES if index else 8, FEATURES, 3, padding=1), nn.BatchNorm2d(FEATURES), Peaked()]
    return nn.Sequential(*made)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = layers()
        self.last = nn.Sequential(nn.Conv2d(FEATURES, 4, 1), nn.BatchNorm2d(4))

    def forward(self, x):
        x = self.last(self.layers(x)).contiguous()
        y = torch.empty_like(x)
        add_relu[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), x.shape[2] * x.shape[3], BLOCK=1024)
        return y
