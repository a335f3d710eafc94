# own/hashed_noise correct: makes the hash where it is added
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def add(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place = at.to(tl.int64)
    mixed = (place ^ (place >> 13)) * 40503 & 0xFFFF
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(o_ptr + at, x + mixed.to(tl.float32) / 65536, mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        add[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
        return o
