# own/cache_rows correct: the reference writes a part of the cache, too; a constant of torch in a kernel
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def append(cache, rows, first, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = o < n
    new = tl.load(rows + o, mask=m, other=-torch.inf)
    tl.store(cache + first + o, tl.maximum(new, 0.0), mask=m)


class ModelNew(nn.Module):
    def forward(self, cache, rows):
        append[(triton.cdiv(rows.numel(), 1024),)](cache, rows, cache.numel() // 2, rows.numel(), BLOCK=1024)
        return cache
