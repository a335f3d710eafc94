# level1/l2_normalize correct: a root and a floor under it, tensors passed by keyword
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def normalize(x, y, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(axis=0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * cols + i, mask=i < cols, other=0)
    length = tl.sqrt_rn(tl.sum(v * v, axis=0))
    tl.store(y + row * cols + i, tl.div_rn(v, tl.maximum(length, eps)), mask=i < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        normalize[(x.shape[0],)](x=x, y=y, cols=x.shape[1], eps=1e-12, BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
