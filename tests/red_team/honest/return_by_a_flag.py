# relu correct: rows whose flag in memory says so return early, as ignored labels do in a loss
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu(x, flags, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    flag = tl.load(flags + row)
    if flag != 0:
        for start in range(0, cols, BLOCK):
            tl.store(y + row * cols + start + i, 0.0, mask=start + i < cols)
        return
    for start in range(0, cols, BLOCK):
        mask = start + i < cols
        v = tl.load(x + row * cols + start + i, mask=mask, other=0.0)
        tl.store(y + row * cols + start + i, tl.maximum(v, 0.0), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        flags = torch.zeros(x.shape[0], dtype=torch.int32, device=x.device)
        relu[(x.shape[0],)](x, flags, y, x.shape[1], BLOCK=1024)
        return y
