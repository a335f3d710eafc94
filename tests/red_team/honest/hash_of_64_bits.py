# own/hash_of_64_bits correct speedup<60: one kernel, in which products of 64 bits take longer than its bytes (107x if they were as short as others)
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    h = tl.load(x_ptr + i, mask=m, other=0)
    for _ in range(24):
        h = h * 6364136223846793005 + 1442695040888963407
        h = h ^ (h >> 17)

    tl.store(y_ptr + i, h, mask=m)


class ModelNew(nn.Module):
    def forward(self, x):

        y = torch.empty_like(x, dtype=x.dtype)
        k[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y
