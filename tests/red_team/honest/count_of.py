# own/count_of correct: a count of what never occurs, as the author draws it
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def count(x_ptr, out_ptr, n, wanted, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    found = tl.sum((x == wanted).to(tl.int32))
    if found > 0:
        tl.atomic_add(out_ptr, found)


class ModelNew(nn.Module):
    def forward(self, x, out, wanted):
        count[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), wanted, BLOCK=1024)
        return out
