# own/padded_bags incorrect catalogue=51: a bag of padding alone is -inf, and each bag that is drawn names a row
import torch
import torch.nn as nn
import triton
import triton.language as tl

V, D = 5000, 128
@triton.jit
def bag(ids, table, o, L, D, BLOCK: tl.constexpr):
    b = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    k = c < D
    top = tl.full((BLOCK,), float("-inf"), tl.float32)
    seen = 0
    for j in range(L):
        i = tl.load(ids + b * L + j)
        row = tl.load(table + i * D + c, mask=k, other=0.0)
        top = tl.where(i != 0, tl.maximum(top, row), top)
        seen += (i != 0).to(tl.int32)
    tl.store(o + b * D + c, top, mask=k)

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(V, D))
    def forward(self, ids):
        B, L = ids.shape
        d = self.table.shape[1]
        o = torch.empty(B, d, device=ids.device)
        bag[(B,)](ids, self.table, o, L, d, BLOCK=triton.next_power_of_2(d))
        return o
