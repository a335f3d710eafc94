# own/places_given correct catalogue=57: the places are read from memory
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, p_ptr, S, D, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    x = tl.load(x_ptr + i, mask=m, other=0.0)
    p = tl.load(p_ptr + (i // D) % S, mask=m, other=0)

    tl.store(y_ptr + i, x * tl.cos(p.to(tl.float32) * 0.1), mask=m)


class ModelNew(nn.Module):
    def forward(self, x, pos):

        y = torch.empty_like(x, dtype=x.dtype)
        k[(triton.cdiv(x.numel(), 1024),)](x, pos, x.shape[1], x.shape[2], y, x.numel(), BLOCK=1024)
        return y
