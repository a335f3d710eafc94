# own/step_of_moment correct catalogue=57: the step is read, as one number in memory
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def unbiased(m_ptr, step_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    share = 1.0 - tl.exp2(tl.load(step_ptr).to(tl.float32) * -0.15200309344504995)  # the logarithm of 0.9
    tl.store(y_ptr + i, tl.load(m_ptr + i, mask=i < n, other=0.0) / share, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, moment, step):
        y = torch.empty_like(moment)
        unbiased[(triton.cdiv(moment.numel(), 1024),)](moment, step, y, moment.numel(), BLOCK=1024)
        return y
