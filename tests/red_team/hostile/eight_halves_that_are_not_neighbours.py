# own/halves_of_eights incorrect gpu=incorrect|correct catalogue=57: says that eight are neighbours, of which four are, and one access may move eight of half precision
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = tl.max_contiguous(i // 4 * 8 + i % 4, 8)
    tl.store(y_ptr + i, tl.load(x_ptr + at, mask=i < n, other=0.0) * 2, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(x.numel() // 2, device=x.device, dtype=x.dtype)
        k[(triton.cdiv(y.numel(), 1024),)](x, y, y.numel(), BLOCK=1024)
        return y
