# own/projected_norm correct: the constructor refuses rows that its kernel has no block for, which smaller ones are
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def project(x_ptr, w_ptr, y_ptr, D, K: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, K)
    total = tl.zeros((K,), tl.float32)
    for first in range(0, D, BLOCK):
        place = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * D + place)
        w = tl.load(w_ptr + place[:, None] * K + column[None, :])
        total += tl.sum(x[:, None] * w, axis=0)
    tl.store(y_ptr + row * K + column, total)


class ModelNew(nn.Module):
    def __init__(self, d, k):
        super().__init__()
        if d % 256:
            raise ValueError("rows are taken in blocks of 256")
        self.centres = nn.Parameter(torch.randn(d, k) / d**0.5)
        self.norm = nn.BatchNorm1d(k)

    def forward(self, x):
        rows, width = x.shape
        count = self.centres.shape[1]
        y = torch.empty(rows, count, device=x.device)
        project[(rows,)](x, self.centres, y, width, count, 256)
        return torch.softmax(self.norm(y), dim=1)
