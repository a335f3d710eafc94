# level1/embedding correct: rows gathered by 64-bit indices
import torch
import torch.nn as nn
import triton
import triton.language as tl

VOCAB = 50000
DIM = 1024


@triton.jit
def gather(index_ptr, table_ptr, out_ptr, dim, BLOCK: tl.constexpr):
    token = tl.program_id(0)
    row = tl.load(index_ptr + token)
    i = tl.arange(0, BLOCK)
    m = i < dim
    tl.store(out_ptr + token * dim + i, tl.load(table_ptr + row * dim + i, mask=m), mask=m)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(VOCAB, DIM))

    def forward(self, index):
        tokens, dim = index.shape[0], self.table.shape[1]
        out = torch.empty((tokens, dim), device=index.device, dtype=self.table.dtype)
        gather[(tokens,)](index, self.table, out, dim, BLOCK=triton.next_power_of_2(dim))
        return out
