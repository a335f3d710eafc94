# own/part_of_a_cube correct: the part lies in the cube, so that nothing is held against the cube's own ends
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def part_sum(x_ptr, o_ptr, planes, rows, plane, row, column, BLOCK: tl.constexpr):
    p = 11 + tl.program_id(0)
    r = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[:, None]
    c = 1 + tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)[None, :]
    x = tl.load(x_ptr + p.to(tl.int64) * planes + r * rows + c, mask=(p <= plane) & (r <= row) & (c <= column), other=0)
    tl.atomic_add(o_ptr, tl.sum(x))


class ModelNew(nn.Module):
    def forward(self, x, plane, row, column):
        o = torch.zeros((), device=x.device, dtype=x.dtype)
        grid = (plane - 10, triton.cdiv(row + 1, 64), triton.cdiv(column, 64))
        part_sum[grid](x, o, x.stride(0), x.stride(1), plane, row, column, BLOCK=64)
        return o
