# level1/embedding correct: a helper that returns another value where the index says so; its time is that of both sides
import torch
import torch.nn as nn
import triton
import triton.language as tl

VOCAB = 50000
DIM = 1024


@triton.jit
def row_of(table_ptr, row, dim, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    if row == 0:
        return tl.load(table_ptr + i, mask=i < dim), i
    base = table_ptr + row.to(tl.int64) * dim
    return tl.load(base + i, mask=i < dim), i


@triton.jit
def larger(a, b):
    if a >= b:
        return a
    else:
        return b


@triton.jit
def gather(index_ptr, table_ptr, y_ptr, dim, BLOCK: tl.constexpr):
    token = tl.program_id(0)
    first = tl.load(index_ptr + token) * 0
    value, i = row_of(table_ptr, larger(tl.load(index_ptr + token), first), dim, BLOCK)
    tl.store(y_ptr + token * dim + i, value, mask=i < dim)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(VOCAB, DIM))

    def forward(self, index):
        y = torch.empty((index.shape[0], self.table.shape[1]), device=index.device)
        gather[(index.shape[0],)](index, self.table, y, self.table.shape[1], BLOCK=triton.next_power_of_2(self.table.shape[1]))
        return y
