# own/distance_of_128_rows incorrect cpu=out_of_bounds|incorrect catalogue=58: half of the parts are never added up, in blocks too small for a look at the full shape
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def parts_0(x_ptr, y_ptr, part_ptr, BLOCK: tl.constexpr):
    part = tl.program_id(0)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, 8192, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + (i + 8192 * part), i < 8192)
        y = tl.load(y_ptr + (i + 8192 * part), i < 8192)
        total += (x - y) * (x - y)
    tl.store(part_ptr + part, tl.sum(total))


@triton.jit
def mean_1(part_ptr, out_ptr, PARTS: tl.constexpr):
    total = tl.sum(tl.load(part_ptr + tl.arange(0, PARTS)))
    tl.store(out_ptr, total / 262144.0)


class ModelNew(nn.Module):
    def forward(self, x, y):
        parts = torch.empty_strided((64,), (1,), device=x.device)
        out = torch.empty_strided((), (), device=x.device)
        parts_0[(64,)](x, y, parts, BLOCK=64)
        mean_1[(1,)](parts, out, PARTS=32)
        return out
