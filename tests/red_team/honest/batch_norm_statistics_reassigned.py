# own/batch_norm correct coverage>0.05: each call leaves new tensors of running statistics to the next; torch reduces them
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def normalize_relu(x, y, mean, rstd, weight, bias, n, C, S, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = o < n
    c = o // S % C
    normal = (tl.load(x + o, mask=m) - tl.load(mean + c, mask=m)) * tl.load(rstd + c, mask=m)
    tl.store(y + o, tl.maximum(normal * tl.load(weight + c, mask=m) + tl.load(bias + c, mask=m), 0.0), mask=m)


C = 64


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm2d(C)

    def forward(self, x):
        bn, mean, var = self.bn, self.bn.running_mean, self.bn.running_var
        if self.training:
            mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3), correction=0)
            count = x.numel() // x.shape[1]
            bn.running_mean = (1 - bn.momentum) * bn.running_mean + bn.momentum * mean
            bn.running_var = (1 - bn.momentum) * bn.running_var + bn.momentum * var * count / (count - 1)
        y = torch.empty_like(x)
        rstd = torch.rsqrt(var + bn.eps)
        size = x.shape[2] * x.shape[3]
        normalize_relu[(triton.cdiv(x.numel(), 1024),)](x, y, mean, rstd, bn.weight, bn.bias, x.numel(), x.shape[1], size, BLOCK=1024)
        return y
