# own/router incorrect catalogue=54: the expert that was taken counts as -10, above all scores of some rows
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def route(x, weights, experts, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + i, mask=i < n, other=-float("inf"))
    most = tl.max(v, 0)
    total = tl.sum(tl.exp(v - most), 0)
    for place in tl.static_range(2):
        expert = tl.argmax(v, 0)
        tl.store(experts + 2 * row + place, expert)
        tl.store(weights + 2 * row + place, tl.exp(tl.max(v, 0) - most) / total)
        v = tl.where(i == expert, -10.0, v)


class ModelNew(nn.Module):
    def forward(self, x):
        weights = torch.empty(x.shape[0], 2, device=x.device)
        experts = torch.empty(x.shape[0], 2, dtype=torch.int32, device=x.device)
        route[(x.shape[0],)](x, weights, experts, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return weights, experts
