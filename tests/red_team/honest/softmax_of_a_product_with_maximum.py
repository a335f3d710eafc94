# own/softmax_of_a_product correct coverage<0.6: the maximum is taken off scores
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rows(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * cols + i, mask=i < cols, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * cols + i, e / tl.sum(e, 0), mask=i < cols)


class ModelNew(nn.Module):
    def forward(self, a, b):
        scores = a @ b
        out = torch.empty_like(scores)
        rows[(scores.shape[0],)](scores, out, scores.shape[1], BLOCK=triton.next_power_of_2(scores.shape[1]))
        return out
