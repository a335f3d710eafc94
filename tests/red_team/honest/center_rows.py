# level2/center_relu correct: a constexpr tuple of options, a helper that returns two values
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def centred(x, keep, cols):
    mean = tl.sum(x, axis=0) / cols
    return tl.where(keep, x - mean, 0.0), mean


@triton.jit
def center_relu(x_ptr, y_ptr, cols, BLOCK: tl.constexpr, RELU: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + i, mask=i < cols, other=0.0)
    x, _ = centred(x, i < cols, cols)
    if RELU:
        x = tl.maximum(x, 0.0)
    tl.store(y_ptr + row * cols + i, x, mask=i < cols)


class ModelNew(nn.Module):
    options = (8, True)

    def forward(self, x):
        y = torch.empty_like(x)
        warps, clip = self.options
        center_relu[(x.shape[0],)](x, y, x.shape[1], triton.next_power_of_2(x.shape[1]), RELU=clip, num_warps=warps)
        return y
