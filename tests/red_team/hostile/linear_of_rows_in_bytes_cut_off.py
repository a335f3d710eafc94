# own/linear_of_rows_in_bytes incorrect catalogue=60: cuts numbers off in place of rounding them
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def product(x, w, out, ROWS, INNER, OUTER, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    top = tl.zeros((BM,), tl.float32)
    for start in range(0, INNER, BK):
        keep = (row < ROWS)[:, None] & (start + inner < INNER)[None, :]
        part = tl.load(x + row[:, None] * INNER + (start + inner)[None, :], keep, other=0.0)
        top = tl.maximum(top, tl.max(tl.abs(part), 1))
    top = tl.maximum(top, 1e-8)
    by = 127.0 / top
    made = tl.zeros((BM, BN), tl.float32)
    for start in range(0, INNER, BK):
        keep = (row < ROWS)[:, None] & (start + inner < INNER)[None, :]
        part = tl.load(x + row[:, None] * INNER + (start + inner)[None, :], keep, other=0.0)
        weight_keep = (column < OUTER)[None, :] & (start + inner < INNER)[:, None]
        weight = tl.load(w + column[None, :] * INNER + (start + inner)[:, None], weight_keep, other=0.0)
        made = tl.dot(libdevice.trunc(part * by[:, None]), weight, made, input_precision="ieee")
    keep = (row < ROWS)[:, None] & (column < OUTER)[None, :]
    tl.store(out + row[:, None] * OUTER + column[None, :], made * (top / 127.0)[:, None], keep)


class ModelNew(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outer, inner))

    def forward(self, x):
        rows, inner = x.shape
        outer = self.weight.shape[0]
        out = torch.empty(rows, outer, device=x.device)
        grid = (triton.cdiv(rows, 32), triton.cdiv(outer, 64))
        product[grid](x, self.weight, out, rows, inner, outer, BM=32, BN=64, BK=32)
        return out
