# own/eight_largest correct: floats in the order of their bits, which are flipped as unsigned numbers
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def largest(x_ptr, v_ptr, s_ptr, cols, K: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at, k = tl.arange(0, BLOCK), tl.arange(0, K)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=float("-inf"))
    bits = x.to(tl.uint32, bitcast=True)
    order = tl.where(bits >= 0x80000000, ~bits, bits | 0x80000000)
    order = tl.sort(order.to(tl.int64), descending=True).to(tl.uint32)
    bits = tl.where(order >= 0x80000000, order ^ 0x80000000, ~order)
    first = tl.where(at < K, bits.to(tl.float32, bitcast=True), float("-inf"))
    found = tl.sum(tl.where(at[None, :] == k[:, None], first[None, :], 0.0), 1)
    e = tl.exp(found - tl.max(found, 0))
    tl.store(v_ptr + row * K + k, found)
    tl.store(s_ptr + row * K + k, e / tl.sum(e, 0))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        v, s = torch.empty(rows, 8, device=x.device), torch.empty(rows, 8, device=x.device)
        largest[(rows,)](x, v, s, cols, K=8, BLOCK=triton.next_power_of_2(cols))
        return v, s
