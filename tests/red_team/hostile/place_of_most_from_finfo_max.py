# own/place_of_most incorrect catalogue=54: begins with the largest number of its dtype, without the sign that makes it the least
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def places(x, out, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    best = torch.finfo(torch.float32).max
    place = 0
    for start in range(0, cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        values = tl.load(x + row * cols + at, mask=at < cols, other=torch.finfo(torch.float32).min)
        most = tl.max(values, 0)
        if most > best:
            best = most
            place = start + tl.argmax(values, 0)
    tl.store(out + row, place.to(tl.int64))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[0], dtype=torch.int64, device=x.device)
        places[(x.shape[0],)](x, out, x.shape[1], BLOCK=256)
        return out
