# level1/smooth_l1_loss correct: two branches of the loss, a loop over the row
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def loss(x_ptr, y_ptr, o_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    acc = tl.zeros([BLOCK], tl.float32)
    for start in tl.range(0, cols, BLOCK, num_stages=2):
        i = start + tl.arange(0, BLOCK)
        d = tl.abs(tl.load(x_ptr + row * cols + i, i < cols, 0.0) - tl.load(y_ptr + row * cols + i, i < cols, 0.0))
        acc += tl.where(d < 1.0, 0.5 * d * d, d - 0.5)
    tl.store(o_ptr + row, tl.sum(tl.where(tl.arange(0, BLOCK) < cols, acc, 0.0)))


class ModelNew(nn.Module):
    def forward(self, x, y):
        o = torch.empty(x.shape[0], device=x.device)
        loss[(x.shape[0],)](x, y, o, x.shape[1], BLOCK=1024)
        return o
