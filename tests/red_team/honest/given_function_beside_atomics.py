# own/row_total correct coverage<0.95: a kernel is given the functions that load a block and that add its sum by an atomic
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def loaded(x_ptr, i, mask):
    return tl.load(x_ptr + i, mask=mask, other=0.0)


@triton.jit
def added(o_ptr, value):
    tl.atomic_add(o_ptr, value)


@triton.jit
def kernel(x_ptr, o_ptr, columns, LOAD: tl.constexpr, ADD: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.sum(LOAD(x_ptr + row * columns, i, i < columns))
    ADD(o_ptr + row, total)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        o = torch.zeros(rows, device=x.device)
        grid = (rows, triton.cdiv(columns, 256))
        kernel[grid](x, o, columns, LOAD=loaded, ADD=added, BLOCK=256)
        return o
