# own/filter_of_255_taps correct: a long loop over taps, whose loads may be from anywhere where one turn stands for others; the output is read by none
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def filtered(x_ptr, taps_ptr, out_ptr, count, taps, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    within = i < count - taps + 1
    total = tl.zeros([BLOCK], tl.float32)
    for tap in range(taps):
        total += tl.load(taps_ptr + tap) * tl.load(x_ptr + i + tap, mask=within, other=0.0)
    tl.store(out_ptr + i, total, mask=within)


class ModelNew(nn.Module):
    def forward(self, x, taps):
        count, width = x.numel(), taps.numel()
        out = torch.empty(count - width + 1, device=x.device)
        filtered[(triton.cdiv(count - width + 1, 1024),)](x, taps, out, count, width, BLOCK=1024)
        return out
