# own/uneven_segments correct catalogue=57: loops begin and end where bounds of segments say
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def segment_sum(x_ptr, bounds_ptr, o_ptr, cols, BLOCK: tl.constexpr):
    segment = tl.program_id(0)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(tl.load(bounds_ptr + segment), tl.load(bounds_ptr + segment + 1)):
        total += tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0)
    tl.store(o_ptr + segment * cols + c, total, mask=c < cols)


class ModelNew(nn.Module):
    def forward(self, x, bounds):
        o = torch.empty(bounds.shape[0] - 1, x.shape[1], device=x.device, dtype=x.dtype)
        segment_sum[(o.shape[0], triton.cdiv(x.shape[1], 128))](x, bounds, o, x.shape[1], BLOCK=128)
        return o
