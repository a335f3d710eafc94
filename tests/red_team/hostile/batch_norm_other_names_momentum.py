# own/batch_norm incorrect catalogue=57: its running variance has the momentum the wrong way round, under a name of its own
import torch
import torch.nn as nn
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
        self.gamma, self.beta = nn.Parameter(torch.ones(C)), nn.Parameter(torch.zeros(C))
        self.register_buffer("running_mean", torch.zeros(C))
        self.register_buffer("running_var", torch.ones(C))

    def forward(self, x):
        mean, var = self.running_mean, self.running_var
        if self.training:
            mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3), correction=0)
            count = x.numel() // x.shape[1]
            self.running_mean.mul_(0.9).add_(0.1 * mean)
            self.running_var.mul_(0.1).add_(0.9 * var * count / (count - 1))
        y = torch.empty_like(x)
        rstd = torch.rsqrt(var + 1e-5)
        size = x.shape[2] * x.shape[3]
        grid = (triton.cdiv(x.numel(), 1024),)
        normalize_relu[grid](x, y, mean, rstd, self.gamma, self.beta, x.numel(), x.shape[1], size, BLOCK=1024)
        return y
