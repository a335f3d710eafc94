# own/scaled_without_init correct: its problem has no get_init_inputs, as the constructor takes nothing
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scaled(x_ptr, scale_ptr, offset_ptr, out_ptr, count, features, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    x = tl.load(x_ptr + at, mask=inside)
    scale = tl.load(scale_ptr + at % features, mask=inside)
    offset = tl.load(offset_ptr + at % features, mask=inside)
    tl.store(out_ptr + at, x * scale + offset, mask=inside)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.empty(1024))
        self.offset = nn.Parameter(torch.empty(1024))

    def forward(self, x):
        out = torch.empty_like(x)
        scaled[(triton.cdiv(x.numel(), 512),)](x, self.scale, self.offset, out, x.numel(), x.shape[1], BLOCK=512)
        return out
