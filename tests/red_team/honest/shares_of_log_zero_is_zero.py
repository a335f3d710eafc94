# own/shares_of_log correct: of a share of zero nothing is added
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rows(s_ptr, t_ptr, o_ptr, C, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    s = tl.load(s_ptr + row * C + i, mask=i < C, other=0.0)
    t = tl.load(t_ptr + row * C + i, mask=i < C, other=0.0)
    tl.store(o_ptr + row, tl.sum(tl.where(t > 0.0, t * (tl.log(t) - s), 0.0)))


class ModelNew(nn.Module):
    def forward(self, logs, shares):
        R, C = logs.shape
        o = torch.empty(R, device=logs.device)
        rows[(R,)](logs, shares, o, C, BLOCK=triton.next_power_of_2(C))
        return o
