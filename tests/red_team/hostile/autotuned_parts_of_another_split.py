# own/few_long_rows incorrect gpu=correct catalogue=56: the first call adds parts that another configuration has left; a GPU tries one alone
import torch
import torch.nn as nn
import triton
import triton.language as tl

MOST = 16


@triton.autotune([triton.Config({"SPLIT": 16}, num_warps=1), triton.Config({"SPLIT": 2}, num_warps=8)], key=["cols"])
@triton.jit
def parts_of(x, parts, cols, MOST: tl.constexpr, SPLIT: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    total = 0.0
    length = tl.cdiv(cols, SPLIT)
    for start in range(part * length, (part + 1) * length, 1024):
        i = start + tl.arange(0, 1024)
        value = tl.load(x + row * cols + i, mask=(i < cols) & (i < (part + 1) * length), other=-float("inf"))
        total += tl.sum(tl.exp(value))
    tl.store(parts + row * MOST + part, total)


@triton.jit
def add(parts, out, MOST: tl.constexpr):
    row = tl.program_id(0)
    total = tl.sum(tl.load(parts + row * MOST + tl.arange(0, MOST)))
    tl.store(out + row, tl.log(total))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        parts = torch.zeros(rows, MOST, device=x.device)
        out = torch.empty(rows, device=x.device)
        parts_of[lambda meta: (rows, meta["SPLIT"])](x, parts, cols, MOST=MOST)
        add[(rows,)](parts, out, MOST=MOST)
        return out
