# level1/embedding correct: gather, with branches that the index decides; their time is that of both sides
import torch
import torch.nn as nn
import triton
import triton.language as tl

VOCAB = 50000
DIM = 1024

@triton.jit
def gather(index_ptr, table_ptr, y_ptr, dim, BLOCK: tl.constexpr):
    token = tl.program_id(0)
    row = tl.load(index_ptr + token)
    i = tl.arange(0, BLOCK)
    if row > 0:
        value = tl.load(table_ptr + row * dim + i, mask=i < dim)
    else:
        value = tl.load(table_ptr + i, mask=i < dim)
    value = value if row > 1 else value * 1.0
    tl.store(y_ptr + token * dim + i, value, mask=i < dim)

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(VOCAB, DIM))

    def forward(self, index):
        y = torch.empty((index.shape[0], self.table.shape[1]), device=index.device)
        gather[(index.shape[0],)](index, self.table, y, self.table.shape[1], BLOCK=triton.next_power_of_2(self.table.shape[1]))
        return y
