# own/turned_by_positions incorrect catalogue=53: the first sequence's positions stand for all
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def turn(x_ptr, at_ptr, out_ptr, HALF, LENGTH, BLOCK: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    keep = lane < HALF
    rate = tl.exp(-lane.to(tl.float32) / HALF * 4.0)
    angle = tl.load(at_ptr + token % LENGTH).to(tl.float32) * rate
    one = tl.load(x_ptr + token * 2 * HALF + lane, keep, other=0.0)
    other = tl.load(x_ptr + token * 2 * HALF + HALF + lane, keep, other=0.0)
    tl.store(out_ptr + token * 2 * HALF + lane, one * tl.cos(angle) - other * tl.sin(angle), keep)
    tl.store(out_ptr + token * 2 * HALF + HALF + lane, other * tl.cos(angle) + one * tl.sin(angle), keep)


class ModelNew(nn.Module):
    def forward(self, x, positions):
        batch, length, dim = x.shape
        out = torch.empty_like(x)
        turn[(batch * length,)](x, positions, out, dim // 2, length, BLOCK=triton.next_power_of_2(dim // 2))
        return out
