# level1/embedding correct: a helper with a return inside a branch inside a branch, and more behind both; its time is that of all
import torch
import torch.nn as nn
import triton
import triton.language as tl

VOCAB = 50000
DIM = 1024


@triton.jit
def row_of(table_ptr, row, dim, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    if row > 0:
        if row == 1:
            return tl.load(table_ptr + dim + i, mask=i < dim)
        table_ptr += row.to(tl.int64) * dim
    value = tl.load(table_ptr + i, mask=i < dim)
    return value


@triton.jit
def gather(index_ptr, table_ptr, y_ptr, dim, BLOCK: tl.constexpr):
    token = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    value = row_of(table_ptr, tl.load(index_ptr + token), dim, BLOCK)
    tl.store(y_ptr + token * dim + i, value, mask=i < dim)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(VOCAB, DIM))

    def forward(self, index):
        y = torch.empty((index.shape[0], self.table.shape[1]), device=index.device)
        gather[(index.shape[0],)](index, self.table, y, self.table.shape[1], BLOCK=triton.next_power_of_2(self.table.shape[1]))
        return y
