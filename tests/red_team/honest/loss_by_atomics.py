# level1/mse_loss correct catalogue=59: every program adds its part to one number, which starts as zero
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def loss(x_ptr, y_ptr, o_ptr, n, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        i = start + tl.arange(0, BLOCK)
        d = tl.load(x_ptr + i, mask=i < n, other=0.0) - tl.load(y_ptr + i, mask=i < n, other=0.0)
        acc += d * d
    tl.atomic_add(o_ptr, tl.sum(acc, axis=0) / n)


class ModelNew(nn.Module):
    def forward(self, x, y):
        o = torch.zeros((), device=x.device)
        loss[(min(1024, triton.cdiv(x.numel(), 2048)),)](x, y, o, x.numel(), BLOCK=2048)
        return o
