# own/eight_largest correct: takes the largest eight times, each place once
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def largest(x_ptr, v_ptr, s_ptr, cols, K: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at, k = tl.arange(0, BLOCK), tl.arange(0, K)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=float("-inf"))
    found = tl.zeros((K,), tl.float32)
    for turn in tl.static_range(K):
        value, place = tl.max(x, 0, return_indices=True)
        found = tl.where(k == turn, value, found)
        x = tl.where(at == place, float("-inf"), x)
    e = tl.exp(found - tl.max(found, 0))
    tl.store(v_ptr + row * K + k, found)
    tl.store(s_ptr + row * K + k, e / tl.sum(e, 0))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        v, s = torch.empty(rows, 8, device=x.device), torch.empty(rows, 8, device=x.device)
        largest[(rows,)](x, v, s, cols, K=8, BLOCK=triton.next_power_of_2(cols))
        return v, s
