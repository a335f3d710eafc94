# own/norm_in_eval_mode correct: normalises by running statistics in any mode, as the reference does in the one it chooses
import torch
import torch.nn as nn
import triton
import triton.language as tl

COLS = 1024


@triton.jit
def kernel(x, mean, var, w, b, y, n, cols, eps, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = o % cols
    inside = o < n
    scale = tl.rsqrt(tl.load(var + c, mask=inside, other=1.0) + eps) * tl.load(w + c, mask=inside, other=0.0)
    shift = tl.load(b + c, mask=inside, other=0.0) - tl.load(mean + c, mask=inside, other=0.0) * scale
    tl.store(y + o, tl.maximum(tl.load(x + o, mask=inside, other=0.0) * scale + shift, 0.0), mask=inside)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(COLS)
        self.eval()

    def forward(self, x):
        y, norm = torch.empty_like(x), self.norm
        kernel[(triton.cdiv(x.numel(), 1024),)](
            x, norm.running_mean, norm.running_var, norm.weight, norm.bias, y, x.numel(), x.shape[1], norm.eps, BLOCK=1024
        )
        return y
