# level1/cross_entropy correct: indexed load, log-sum-exp
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def loss(x_ptr, t_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + i, mask=i < cols, other=-float("inf"))
    m = tl.max(x, 0)
    lse = m + tl.log(tl.sum(tl.exp(x - m), 0))
    tl.store(y_ptr + row, lse - tl.load(x_ptr + row * cols + tl.load(t_ptr + row)))

class ModelNew(nn.Module):
    def forward(self, logits, target):
        y = torch.empty(logits.shape[0], device=logits.device)
        loss[(logits.shape[0],)](logits, target, y, logits.shape[1], BLOCK=triton.next_power_of_2(logits.shape[1]))
        return y
