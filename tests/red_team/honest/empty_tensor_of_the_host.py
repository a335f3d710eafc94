# relu correct: a place-holder for a pointer that is not used, an empty tensor in the host's memory, whose address is null
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, sums, n, KEEPS_SUMS: tl.constexpr, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.maximum(tl.load(x + o, mask=o < n, other=0.0), 0.0)
    tl.store(y + o, v, mask=o < n)
    if KEEPS_SUMS:
        tl.store(sums + tl.program_id(0), tl.sum(v, 0))


class ModelNew(nn.Module):
    def forward(self, x):
        y, sums = torch.empty_like(x), torch.empty([0], dtype=torch.float32, device="cpu")
        kernel[(triton.cdiv(x.numel(), 1024),)](x, y, sums, x.numel(), KEEPS_SUMS=False, BLOCK=1024)
        return y
