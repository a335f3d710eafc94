# own/top_two_half correct gpu=correct|incorrect: the last of equal numbers, which is as right as any other
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def k(x, y, p, M, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + r * M + i, mask=i < M, other=float("-inf")).to(tl.float32)
    for j in tl.static_range(2):
        most = tl.max(v, 0)
        at = tl.max(tl.where(v == most, i, -1), 0)
        tl.store(y + 2 * r + j, most.to(y.dtype.element_ty))
        tl.store(p + 2 * r + j, at.to(tl.int64))
        v = tl.where(i == at, float("-inf"), v)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], 2, dtype=x.dtype, device=x.device)
        p = torch.empty(x.shape[0], 2, dtype=torch.int64, device=x.device)
        k[(x.shape[0],)](x, y, p, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y, p
