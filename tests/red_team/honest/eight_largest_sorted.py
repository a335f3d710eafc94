# own/eight_largest correct: sorts the row by tl.sort and keeps the first
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def largest(x_ptr, v_ptr, s_ptr, cols, K: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=float("-inf"))
    x = tl.sort(x, descending=True)
    first = at < K
    top = tl.max(x, 0)
    e = tl.where(first, tl.exp(x - top), 0.0)
    tl.store(v_ptr + row * K + at, x, mask=first)
    tl.store(s_ptr + row * K + at, e / tl.sum(e, 0), mask=first)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        v, s = torch.empty(rows, 8, device=x.device), torch.empty(rows, 8, device=x.device)
        largest[(rows,)](x, v, s, cols, K=8, BLOCK=triton.next_power_of_2(cols))
        return v, s
