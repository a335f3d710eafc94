# own/rmsprop_step incorrect catalogue=51: without the epsilon, which matters where gradient and mean square are zero at once
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def step(weight, gradient, square, made, mean, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    g = tl.load(gradient + i, mask=inside, other=0.0)
    s = 0.99 * tl.load(square + i, mask=inside, other=0.0) + 0.01 * g * g
    w = tl.load(weight + i, mask=inside, other=0.0)
    tl.store(mean + i, s, mask=inside)
    tl.store(made + i, w - 1e-3 * g / tl.sqrt(s), mask=inside)

class ModelNew(nn.Module):
    def forward(self, weight, gradient, square):
        made, mean = torch.empty_like(weight), torch.empty_like(square)
        n = weight.numel()
        step[(triton.cdiv(n, 1024),)](weight, gradient, square, made, mean, n, BLOCK=1024)
        return made, mean
