# own/norm_in_eval_mode incorrect catalogue=57: normalises by the batch, although the reference chooses eval mode
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl

COLS = 1024


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + o, tl.maximum(tl.load(x + o, mask=o < n, other=0.0), 0.0), mask=o < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(COLS)
        self.eval()

    def forward(self, x):
        x = F.batch_norm(x, None, None, self.norm.weight, self.norm.bias, True)
        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y
