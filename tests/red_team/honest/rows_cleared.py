# own/rows_cleared correct speedup<1.5: every row that is named is written whole, as the reference's scatter of one number does
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def clear(cache, slots, cols, BLOCK: tl.constexpr):
    slot = tl.load(slots + tl.program_id(0))
    o = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.store(cache + slot * cols + o, tl.full((BLOCK,), -1.0, tl.float32), mask=o < cols)


class ModelNew(nn.Module):
    def forward(self, cache, slots):
        cols = cache.shape[1]
        clear[(slots.numel(), triton.cdiv(cols, 1024))](cache, slots, cols, BLOCK=1024)
        return cache
