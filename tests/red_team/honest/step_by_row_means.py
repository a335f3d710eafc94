# own/step_by_row_means correct: one program for each row, and the epsilon added to each square
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def step(weight, gradient, mean, made, kept, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        c = start + tl.arange(0, BLOCK)
        g = tl.load(gradient + row * columns + c, mask=c < columns, other=0.0)
        total += tl.where(c < columns, g * g + 1e-30, 0.0)
    m = 0.9 * tl.load(mean + row) + 0.1 * tl.sum(total, 0) / columns
    tl.store(kept + row, m)
    scale = 1e-2 * tl.rsqrt(m)
    for start in range(0, columns, BLOCK):
        c = start + tl.arange(0, BLOCK)
        g = tl.load(gradient + row * columns + c, mask=c < columns, other=0.0)
        w = tl.load(weight + row * columns + c, mask=c < columns, other=0.0)
        tl.store(made + row * columns + c, w - scale * g, mask=c < columns)

class ModelNew(nn.Module):
    def forward(self, weight, gradient, mean):
        rows, columns = weight.shape
        made, kept = torch.empty_like(weight), torch.empty_like(mean)
        step[(rows,)](weight, gradient, mean, made, kept, columns, BLOCK=256)
        return made, kept
